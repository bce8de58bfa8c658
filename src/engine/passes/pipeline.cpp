#include "engine/passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/check.h"
#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/delayed_scaling.h"
#include "engine/passes/fuse.h"
#include "engine/passes/lay_out.h"
#include "engine/passes/recompute.h"

namespace halfwatt {
namespace {

/// A graph on its way: passes read what is asked, and change the rest.
struct Work {
  const Compilation& asked;
  Graph graph;
  std::optional<Graph> update;
  std::vector<std::string> remarks;
};

struct GraphPass {
  std::string_view name;
  Result<void> (*run)(Work& work);
};

Result<void> precision(Work& work) {
  auto cast =
      with_precision(work.graph, work.asked.precision, work.asked.overrides, work.asked.scales);
  if (!cast) {
    return cast.error();
  }
  work.graph = std::move(*cast);
  return {};
}

// A misspelt pattern would train what was to stay as it is.
Result<void> check_patterns(const Graph& graph,
                            std::string_view flag,
                            const std::vector<std::string>& patterns) {
  const std::vector<StateSpec>& states = graph.states();
  for (const std::string& pattern : patterns) {
    const bool named = std::any_of(states.begin(), states.end(), [&](const StateSpec& state) {
      return state.role == StateRole::parameter && any_names({&pattern, 1}, state.name);
    });
    if (!named) {
      return bad_input(
          fmt::format("{} {}: no parameter or layer is called so; the first parameter is {}",
                      flag, pattern, states.empty() ? "none" : states.front().name));
    }
  }
  return {};
}

Result<void> autodiff(Work& work) {
  if (!work.asked.optimizer) {
    return {};
  }
  const std::vector<std::string>& frozen = work.asked.freeze;
  for (const auto& [flag, patterns] :
       {std::pair{"--freeze", &frozen}, {"--no-decay", &work.asked.optimizer->no_decay}}) {
    if (const auto named = check_patterns(work.graph, flag, *patterns); !named) {
      return named;
    }
  }
  work.graph =
      with_gradients(work.graph, work.asked.precision, work.asked.micro_batches, frozen);
  if (!frozen.empty() && gradient_names(work.graph).empty()) {
    return bad_input(fmt::format("--freeze {}: leaves nothing that learns",
                                 fmt::join(frozen, " --freeze ")));
  }
  return {};
}

void append_update(Work& work) {
  if (!work.asked.optimizer || gradient_names(work.graph).empty()) {
    return;
  }
  const Precision& precision = work.asked.precision;
  if (work.asked.micro_batches == 1) {
    work.graph = with_update(work.graph, precision, *work.asked.optimizer);
  } else {
    work.graph = with_accumulation(work.graph, precision);
    work.update = update_of(work.graph, precision, *work.asked.optimizer);
  }
}

Result<void> update(Work& work) {
  if (work.asked.averages) {
    work.graph = with_averages(work.graph, work.asked.freeze);
  }
  if (work.asked.calibrates) {
    observe_all(work.graph);
  }
  append_update(work);
  drop_unread_magnitudes(work.graph);
  return {};
}

Result<void> placement(Work& work) {
  auto placed = with_placement(work.graph, work.asked.place, work.asked.targets);
  if (!placed) {
    return placed.error();
  }
  if (work.update) {
    auto follows = with_homes(*work.update, placed->homes, work.asked.targets);
    if (!follows) {
      return follows.error();
    }
    work.update = std::move(*follows);
  }
  work.graph = std::move(placed->graph);
  work.remarks = std::move(placed->remarks);
  return {};
}

Result<void> recompute(Work& work) {
  if (work.asked.recompute) {
    work.graph = with_recompute(work.graph);
    drop_unread_magnitudes(work.graph);  // of products that are computed again
  }
  return {};
}

Result<void> fuse(Work& work) {
  work.graph = with_fused(work.graph);
  if (work.update) {
    work.update = with_fused(*work.update);
  }
  return {};
}

Result<void> lay_out(Work& work) {
  if (work.asked.weights_are_fixed) {
    work.graph = with_panels(work.graph, work.asked.targets);
  }
  return {};
}

// From top to bottom.
constexpr std::array kPasses = {
    GraphPass{"precision", precision},  //
    GraphPass{"autodiff", autodiff},    //
    GraphPass{"update", update},        //
    GraphPass{"placement", placement},  //
    GraphPass{"recompute", recompute},  //
    GraphPass{"fuse", fuse},            //
    GraphPass{"lay_out", lay_out},
};

Result<void> check_pass(std::string_view flag, std::string_view name) {
  const auto names = pass_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return {};
  }
  return bad_input(
      fmt::format("{} {}: no such pass; there are {}", flag, name, fmt::join(names, ", ")));
}

Result<void> check(const Compilation& asked) {
  HALFWATT_CHECK(!asked.targets.empty() && asked.micro_batches >= 1,
                 "a compilation is for a device and a batch");
  HALFWATT_CHECK(!(asked.averages && asked.optimizer), "a training reads what it changes");
  HALFWATT_CHECK(!(asked.weights_are_fixed && (asked.averages || asked.optimizer)),
                 "weights that somebody trains are not fixed");
  HALFWATT_CHECK(!((asked.scales || asked.calibrates) && asked.optimizer),
                 "a training finds its scales by itself");
  if (asked.optimizer && accumulates_narrow(asked.precision, asked.overrides)) {
    return bad_input(
        "accumulate=fp16 is for an inference: gradients need sums in fp32 (accumulate=fp32)");
  }
  for (const std::string& name : asked.skip) {
    if (const auto known = check_pass("--skip-pass", name); !known) {
      return known;
    }
  }
  return asked.print_after.empty() ? Result<void>()
                                   : check_pass("--print-after", asked.print_after);
}

Result<void> check(const Work& work, std::string_view pass) {
  for (const Graph* graph : {&work.graph, work.update ? &*work.update : nullptr}) {
    if (const auto legal = graph ? verify(*graph) : Result<void>(); !legal) {
      return bad_input(fmt::format("after pass {}: {}", pass, legal.error().message));
    }
  }
  return {};
}

std::string print(const Work& work) {
  return work.update
             ? fmt::format("micro-batch\n{}\nupdate\n{}", text(work.graph), text(*work.update))
             : text(work.graph);
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const GraphPass& pass : kPasses) {
    names.push_back(pass.name);
  }
  return names;
}

Result<Compiled> compile(const Graph& model, const Compilation& asked) {
  if (const auto fine = check(asked); !fine) {
    return fine.error();
  }
  Work work{asked, model, {}, {}};
  Compiled compiled;
  for (const GraphPass& pass : kPasses) {
    const auto start = std::chrono::steady_clock::now();
    const bool skipped =
        std::find(asked.skip.begin(), asked.skip.end(), pass.name) != asked.skip.end();
    if (const auto done = skipped ? Result<void>() : pass.run(work); !done) {
      return done.error();
    }
    if (const auto legal = check(work, pass.name); !legal) {
      return legal.error();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    compiled.passes.push_back({pass.name, Seconds(took.count()), skipped});
    if (asked.print_after == pass.name) {
      compiled.printed = print(work);
    }
  }
  compiled.graph = std::move(work.graph);
  compiled.update = std::move(work.update);
  compiled.remarks = std::move(work.remarks);
  return compiled;
}

}  // namespace halfwatt

#include "cli/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "cli/model_flags.h"
#include "engine/plan/known_targets.h"

namespace halfwatt {
namespace {

constexpr double kMostImages = 1 << 20;

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> all;
  while (true) {
    const std::size_t comma = list.find(',');
    all.emplace_back(list.substr(0, comma));
    if (comma == list.npos) {
      return all;
    }
    list.remove_prefix(comma + 1);
  }
}

/// Which of `known` the flag says, the first if it is not given.
template <std::size_t N>
Result<std::size_t> choice(const Invocation& invocation,
                           std::string_view flag,
                           const std::array<std::string_view, N>& known) {
  const std::string word = invocation.get(flag).value_or(std::string(known[0]));
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) {
    return bad_input(fmt::format("{} {}: needed {}", flag, word, fmt::join(known, " or ")));
  }
  return static_cast<std::size_t>(found - known.begin());
}

Result<Bytes> memory_size(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {
      {{"", 1},
       {"MB", 1e6},
       {"GB", 1e9},
       {"TB", 1e12},
       {"KiB", 1024.0},
       {"MiB", 1024.0 * 1024},
       {"GiB", 1024.0 * 1024 * 1024},
       {"TiB", 1024.0 * 1024 * 1024 * 1024}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit =
      std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, bytes] : kUnits) {
    if (error == std::errc() && unit == name && number > 0 && number * bytes < 1e18) {
      return Bytes(number * bytes);
    }
  }
  return bad_input(fmt::format("--memory {}: needed a size such as 22GiB or 24GB", text));
}

Result<void> read_model(const Invocation& invocation, PlanRequest& request) {
  auto model = model_asked(invocation);
  const auto mode =
      choice(invocation, "--mode", std::array<std::string_view, 2>{"train", "infer"});
  if (!model || !mode) {
    return !model ? model.error() : mode.error();
  }
  request.model = std::move(*model);
  request.mode = *mode == 0 ? ModelMode::train : ModelMode::infer;
  request.compilation.weights_are_fixed = request.mode == ModelMode::infer;
  return {};
}

Result<void> read_batch(const Invocation& invocation, PlanRequest& request) {
  if (invocation.get("--batch").value_or("") != "auto") {
    const auto batch = invocation.whole("--batch", 1, 1, kMostImages);
    if (!batch) {
      return batch.error();
    }
    request.batch = static_cast<std::int64_t>(*batch);
  }
  const auto effective = invocation.whole("--effective-batch", 0, 1, kMostImages);
  if (!effective) {
    return effective.error();
  }
  if (!invocation.has("--effective-batch")) {
    return {};
  }
  request.effective = static_cast<std::int64_t>(*effective);
  if (request.mode == ModelMode::infer) {
    return bad_input("--effective-batch: is for --mode train; inference accumulates nothing");
  }
  if (request.batch && *request.effective % *request.batch != 0) {
    return bad_input(fmt::format("--effective-batch {}: needed a multiple of --batch {}",
                                 *request.effective, *request.batch));
  }
  return {};
}

Result<void> read_precision(const Invocation& invocation, Compilation& asked) {
  auto precision = precision_asked(invocation);
  auto overrides = overrides_asked(invocation);
  if (!precision || !overrides) {
    return !precision ? precision.error() : overrides.error();
  }
  asked.precision = std::move(*precision);
  asked.overrides = std::move(*overrides);
  return {};
}

Result<void> read_passes(const Invocation& invocation, PlanRequest& request) {
  Compilation& asked = request.compilation;
  const auto optimizer =
      choice(invocation, "--optimizer", std::array<std::string_view, 2>{"adamw", "sgd"});
  const auto recompute =
      choice(invocation, "--recompute", std::array<std::string_view, 2>{"none", "blocks"});
  if (!optimizer || !recompute) {
    return !optimizer ? optimizer.error() : recompute.error();
  }
  if (request.mode == ModelMode::train) {
    asked.optimizer = Optimizer();
    asked.optimizer->kind = *optimizer == 0 ? Optimizer::Kind::adamw : Optimizer::Kind::sgd;
  }
  asked.recompute = *recompute == 1;
  asked.skip = invocation.all("--skip-pass");
  asked.print_after = invocation.get("--print-after").value_or("");
  return {};
}

// Without --target, the devices that --place names; without either, this machine's processor.
Result<void> read_targets(const Invocation& invocation, Compilation& asked) {
  for (const std::string& text : invocation.all("--place")) {
    auto rules = placement_rules(text);
    if (!rules) {
      return rules.error();
    }
    asked.place.insert(asked.place.end(), rules->begin(), rules->end());
  }
  std::vector<std::string> names;
  if (const auto list = invocation.get("--target")) {
    names = words(*list);
  }
  for (const PlacementRule& rule : asked.place) {
    if (!invocation.has("--target") &&
        std::find(names.begin(), names.end(), rule.target) == names.end()) {
      names.push_back(rule.target);
    }
  }
  if (names.empty()) {
    names.emplace_back("cpu");
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    auto target = target_named(name);
    if (!target) {
      return target.error();
    }
    if (!seen.insert(target->name).second) {
      return bad_input(fmt::format("--target: two devices {}; {}:0,{}:1 are told apart",
                                   target->name, target->name, target->name));
    }
    asked.targets.push_back(std::move(*target));
  }
  return {};
}

Result<void> read_output(const Invocation& invocation, PlanRequest& request) {
  const auto format =
      choice(invocation, "--format", std::array<std::string_view, 2>{"text", "json"});
  if (!format) {
    return format.error();
  }
  request.json = *format == 1;
  if (const auto text = invocation.get("--memory")) {
    const auto memory = memory_size(*text);
    if (!memory) {
      return memory.error();
    }
    request.memory = *memory;
  }
  return {};
}

}  // namespace

StepCut PlanRequest::asked() const {
  return {*batch, effective ? *effective / *batch : 1, compilation.recompute};
}

std::vector<Option> plan_options() {
  return {
      {"--model", "NAME", "as timm calls it: vit_base_patch16_224"},
      {"--classes", "N", "of the head; the default is 1000, 1 is one logit"},
      {"--mode", "MODE", "train (the default) or infer"},
      {"--batch", "N", "images at a time (the default is 1), or auto: the most that fit"},
      {"--effective-batch", "N", "images of a step, accumulated over micro-batches"},
      precision_option(),
      {"--override", "PATTERN=MODE", "another precision for some layers: 'head.*=fp32'", true},
      {"--target", "LIST",
       "devices to plan for: h200, a100, rtx3090, rtx4090, t4, cpu, or FILE.json; "
       "docs/targets.md"},
      {"--memory", "SIZE", "of every device, instead of what it has: 22GiB"},
      {"--place", "WHAT=DEVICE",
       "split over devices, by layer ('blocks.[0-5].*=t4:0') or precision "
       "(fp32=t4:0,16bit=t4:1)",
       true},
      {"--recompute", "WHAT",
       "none (the default), or blocks: keep less for the backward, compute it twice"},
      {"--optimizer", "NAME", "adamw (the default) or sgd"},
      {"--skip-pass", "PASS",
       "leave out a pass: precision, autodiff, update, placement, recompute or fuse", true},
      {"--print-after", "PASS", "print the graph after a pass instead of the plan"},
      {"--format", "FORMAT", "text (the default) or json; docs/plan.md"},
  };
}

Result<PlanRequest> plan_request(const Invocation& invocation) {
  PlanRequest request;
  for (const auto read : {read_model, read_batch, read_passes, read_output}) {
    if (const auto fine = read(invocation, request); !fine) {
      return fine.error();
    }
  }
  for (const auto read : {read_precision, read_targets}) {
    if (const auto fine = read(invocation, request.compilation); !fine) {
      return fine.error();
    }
  }
  return request;
}

}  // namespace halfwatt

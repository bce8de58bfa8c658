#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/plan_request.h"
#include "cli/processor_rates.h"
#include "device/cpu_model.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cpu/kernels/available_threads.h"
#include "engine/plan/summary_text.h"

namespace halfwatt {
namespace {

/// This machine's processors, as one of the devices that are planned for.
struct Processor {
  std::size_t target = 0;
  int threads = 0;
  std::unique_ptr<Backend> backend = nullptr;
};

// What a target that is this machine's processors can do, its backend says; several of them
// share the threads.
Result<std::vector<Processor>> open_processors(std::vector<Target>& targets) {
  std::vector<Processor> all;
  for (std::size_t at = 0; at < targets.size(); ++at) {
    if (targets[at].id.kind == DeviceId::Kind::cpu) {
      all.push_back({at});
    }
  }
  for (Processor& each : all) {
    each.threads = std::max(1, cpu::available_threads() / static_cast<int>(all.size()));
    auto backend = open_cpu({targets[each.target].name, each.threads});
    if (!backend) {
      return backend.error();
    }
    each.backend = std::move(*backend);
    targets[each.target] = each.backend->target();
  }
  return all;
}

// Only now, when all else is right: it may take some seconds, once on a machine.
Result<void> measure(const std::vector<Processor>& processors, Compilation& asked) {
  std::vector<Precision> precisions = {asked.precision};
  for (const PrecisionOverride& each : asked.overrides) {
    precisions.push_back(each.precision);
  }
  for (const Processor& each : processors) {
    const auto rates = processor_rates(*each.backend, each.threads, precisions);
    if (!rates) {
      return rates.error();
    }
    Target& target = asked.targets[each.target];
    target = with_rates(std::move(target), *rates);
    target.source = fmt::format("measured on {}, {} thread{}", cpu_model(), each.threads,
                                each.threads > 1 ? "s" : "");
  }
  return {};
}

struct Made {
  Compiled compiled;
  StepPlan step;
};

Result<Made> make(const PlanRequest& request,
                  const StepCut& fit,
                  const std::vector<Target>& targets,
                  const std::vector<PlacementRule>& place) {
  Compilation asked = request.compilation;
  asked.targets = targets;
  asked.place = place;
  asked.micro_batches = static_cast<int>(fit.micro_batches);
  asked.recompute = asked.recompute || fit.recompute;
  auto compiled = compile(vit(request.model, fit.batch, request.mode), asked);
  if (!compiled) {
    return compiled.error();
  }
  auto step = lower_step(compiled->graph, compiled->update, asked.micro_batches, asked.targets);
  if (!step) {
    return step.error();
  }
  return Made{std::move(*compiled), std::move(*step)};
}

Result<Made> make(const PlanRequest& request, const StepCut& fit) {
  return make(request, fit, request.compilation.targets, request.compilation.place);
}

std::optional<Bytes> memory_of(const PlanRequest& request, const Target& target) {
  return request.memory ? request.memory : target.memory;
}

// By how much the fullest device is too full; far from it where its memory is unknown.
double excess_of(const PlanRequest& request,
                 const StepPlan& step,
                 const std::vector<Target>& targets) {
  double most = -1e18;
  for (std::size_t device = 0; device < targets.size(); ++device) {
    if (const auto memory = memory_of(request, targets[device])) {
      const auto needs = static_cast<double>(step.footprint(static_cast<int>(device)).total());
      most = std::max(most, needs - memory->value());
    }
  }
  return most;
}

Result<std::optional<StepCut>> largest(const PlanRequest& request,
                                       std::optional<std::int64_t> effective) {
  auto fit = largest_that_fits(effective, [&](const StepCut& each) -> Result<double> {
    const auto made = make(request, each);
    return made ? Result<double>(excess_of(request, made->step, request.compilation.targets))
                : Result<double>(made.error());
  });
  if (fit && *fit) {
    (*fit)->recompute = (*fit)->recompute || request.compilation.recompute;
  }
  return fit;
}

// "on t4: 21.3 GiB are needed, 15.0 GiB are there".
std::string shortage(const PlanRequest& request, const StepPlan& step) {
  std::string all;
  const auto& targets = request.compilation.targets;
  for (std::size_t device = 0; device < targets.size(); ++device) {
    const auto memory = memory_of(request, targets[device]);
    const Bytes needs(static_cast<double>(step.footprint(static_cast<int>(device)).total()));
    if (memory && needs > *memory) {
      all += fmt::format("{}{} are needed on {}, {} are there", all.empty() ? "" : "; ",
                         bytes_text(needs), targets[device].name, bytes_text(*memory));
    }
  }
  return all;
}

// Not even one image fits: says how much memory one takes, computed as sparingly as possible.
Error nothing_fits(const PlanRequest& request) {
  const auto least = make(request, {1, request.effective.value_or(1), true});
  if (!least) {
    return least.error();
  }
  return bad_input(fmt::format("--batch 1 does not fit, with --recompute blocks either: {}",
                               shortage(request, least->step)));
}

Error does_not_fit(const PlanRequest& request, const StepCut& asked, const StepPlan& step) {
  const bool trains = request.mode == ModelMode::train;
  const std::int64_t images = asked.batch * asked.micro_batches;
  const auto fit = largest(request, trains ? std::optional(images) : std::nullopt);
  if (!fit) {
    return fit.error();
  }
  if (!*fit) {
    return nothing_fits(request);
  }
  const StepCut& would = **fit;
  std::string flags = fmt::format("--batch {}", would.batch);
  if (trains && would.micro_batches > 1) {
    flags += fmt::format(" --effective-batch {}", images);
  }
  if (would.recompute) {
    flags += " --recompute blocks";
  }
  return bad_input(fmt::format("--batch {} does not fit: {}; {} would", asked.batch,
                               shortage(request, step), flags));
}

Result<StepCut> decide(const PlanRequest& request) {
  if (request.batch) {
    return request.asked();
  }
  for (const Target& target : request.compilation.targets) {
    if (!memory_of(request, target)) {
      return bad_input(fmt::format(
          "--batch auto: the memory of {} is unknown; needed --memory, as in --memory 16GiB",
          target.name));
    }
  }
  const auto fit = largest(request, request.effective);
  if (!fit) {
    return fit.error();
  }
  return *fit ? Result<StepCut>(**fit) : Result<StepCut>(nothing_fits(request));
}

// The fastest of the devices that computes and holds the step alone.
std::optional<std::pair<std::string, Seconds>> alone(const PlanRequest& request,
                                                     const StepCut& fit) {
  std::optional<std::pair<std::string, Seconds>> best;
  for (const Target& target : request.compilation.targets) {
    const std::vector<Target> one = {target};
    const auto made = make(request, fit, one, {});
    if (!made || excess_of(request, made->step, one) > 0) {
      continue;
    }
    const auto prediction = predict(made->step, one);
    if (prediction && (!best || prediction->time < best->second)) {
      best = {target.name, prediction->time};
    }
  }
  return best;
}

PlanTitle title_of(const PlanRequest& request, const StepCut& fit, const Compiled& compiled) {
  PlanTitle title{request.model.name,
                  request.mode == ModelMode::train ? "train" : "infer",
                  request.compilation.precision.name,
                  fit.batch,
                  static_cast<int>(fit.micro_batches),
                  fit.recompute};
  if (request.compilation.targets.size() > 1) {
    title.alone = alone(request, fit);
  }
  title.remarks = compiled.remarks;
  for (const Compiled::Pass& pass : compiled.passes) {
    if (!pass.skipped) {
      title.passes.emplace_back(pass.name, pass.took);
    }
  }
  return title;
}

Result<void> run(const Invocation& invocation) {
  auto request = plan_request(invocation);
  if (!request) {
    return request.error();
  }
  const auto processors = open_processors(request->compilation.targets);
  if (!processors) {
    return processors.error();
  }
  const auto fit = decide(*request);
  if (!fit) {
    return fit.error();
  }
  const auto made = make(*request, *fit);
  if (!made) {
    return made.error();
  }
  if (!request->compilation.print_after.empty()) {
    return print(made->compiled.printed);
  }
  if (excess_of(*request, made->step, request->compilation.targets) > 0) {
    return does_not_fit(*request, *fit, made->step);
  }
  if (const auto known = measure(*processors, request->compilation); !known) {
    return known.error();
  }
  const PlanTitle title = title_of(*request, *fit, made->compiled);
  const PlanSummary summary = summarize(made->step, request->compilation.targets);
  return print(request->json ? plan_json(title, summary)
                             : for_stdout(plan_document(title, summary)));
}

}  // namespace

Command plan_command() {
  Command command;
  command.name = "plan";
  command.summary = "what a model's step needs and takes, before it runs";
  command.description =
      "Compiles a model for one device or several and says, without running anything and "
      "without having the device: memory by what it is for and by layer, FLOPs, bytes moved "
      "and the time that these take by the device's rates; which products have rows of no "
      "whole 16 bytes. With --batch auto, the largest batch that fits, accumulated to "
      "--effective-batch, and blocks computed twice where nothing fits otherwise.\n\n"
      "With --place, the model is split over devices, and the plan says whether that is faster "
      "than the fastest of them alone.\n\n"
      "The target cpu, which is planned for where nothing else is said, is this machine's "
      "processors. Their rates are measured in each precision when it is first asked for, "
      "which "
      "takes some seconds, and kept below ~/.cache/halfwatt; halfwatt bench --fresh-probes "
      "measures them again.";
  command.options = plan_options();
  command.examples = {
      {"halfwatt plan --model vit_base_patch16_224 --batch 160 --target h200",
       "a training step; --precision says in what"},
      {"halfwatt plan --model vit_base_patch16_224 --batch auto --target t4",
       "the largest batch that fits"},
      {"halfwatt plan --model vit_base_patch16_224 --target a100,t4 --place head=t4",
       "is it worth to split it so?"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt

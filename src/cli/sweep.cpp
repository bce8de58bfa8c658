#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "cli/command_job.h"
#include "cli/interruptions.h"
#include "cli/output.h"
#include "cli/record_file.h"
#include "cli/simulation.h"
#include "guard/scoped_limit_guard.h"
#include "report/progress_line.h"
#include "tune/grid_search.h"
#include "tune/limit_search.h"
#include "tune/tuner.h"
#include "tune/verdict_document.h"

namespace halfwatt {
namespace {

constexpr double kUsualStep = 10;  // W

/// Everything a sweep needs, read from the command line.
struct Job {
  std::unique_ptr<Simulation> simulation;  ///< a recording played back, or
  std::unique_ptr<CommandJob> command;     ///< a program of the user's
  LimitSpace space;
  AnalysisOptions asked;
  std::vector<double> clamped;  ///< limits that stand for ones outside the card's range

  Device& device() { return command ? command->device() : simulation->card; }
  Clock& clock() { return command ? static_cast<Clock&>(command->clock) : simulation->clock; }
  Workload& workload() {
    return command ? static_cast<Workload&>(*command->workload) : simulation->workload;
  }
};

Result<void> open_recording(const Invocation& invocation, Job& job) {
  const Result<DeviceId> device =
      DeviceId::parse(invocation.get("--device").value_or("sim:rtx3090"));
  if (!device) {
    return device.error();
  }
  const Result<std::vector<RecordedSeries>> all = series_of(*device);
  if (!all) {
    return all.error();
  }
  const Result<RecordedSeries> series = find_workload(*all, invocation.get("--workload"));
  if (!series) {
    return series.error();
  }
  Result<std::unique_ptr<Simulation>> simulation =
      open_simulation(invocation, *device, *series);
  if (!simulation) {
    return simulation.error();
  }
  job.simulation = std::move(*simulation);
  return {};
}

Result<void> open_command(const Invocation& invocation, Job& job) {
  Result<std::unique_ptr<CommandJob>> command = open_command_job(invocation);
  if (!command) {
    return command.error();
  }
  job.command = std::move(*command);
  return {};
}

// The limit in force, which --measure-only leaves alone.
Result<Watts> limit_in_force(Job& job) {
  const Result<Sample> sample = job.device().read();
  if (!sample) {
    return sample.error();
  }
  for (const SignalId id : {SignalId::enforced_limit, SignalId::requested_limit}) {
    if (const auto& watts = (*sample)[id]) {
      return Watts(*watts);
    }
  }
  return Error{ErrorKind::device,
               fmt::format("{}: it does not tell its power limit, under which the figures are "
                           "noted",
                           job.device().info().name)};
}

// The limits that may be set: what the card takes, and of a real one no more than was found.
Result<LimitRange> range_of(Job& job) {
  if (job.simulation) {
    return *job.simulation->card.info().limits;
  }
  if (job.command->guardian) {
    return LimitRange{job.command->guardian->bottom(), job.command->guardian->top(), {}};
  }
  const Result<Watts> limit = limit_in_force(job);
  return limit ? Result<LimitRange>(LimitRange{*limit, *limit, {}}) : limit.error();
}

Result<Job> with_space(const Invocation& invocation, Job job) {
  const Result<LimitRange> range = range_of(job);
  if (!range) {
    return range.error();
  }
  const LimitRange limits = *range;
  if (limits.min == limits.max) {
    job.space = {power_limit_knob(), limits.min.value(), limits.max.value(), kUsualStep};
    return Result<Job>(std::move(job));
  }
  constexpr double kFinestStep = 1;
  const Result<double> step =
      invocation.number("--step", kUsualStep, kFinestStep, (limits.max - limits.min).value());
  if (!step) {
    return step.error();
  }
  job.space = {power_limit_knob(*step), limits.min.value(), limits.max.value(), *step};
  return Result<Job>(std::move(job));
}

Result<Job> read_job(const Invocation& invocation) {
  if (const Result<void> fine = check_output(invocation); !fine) {
    return fine.error();
  }
  if (invocation.has("--measure-only") && invocation.command().empty()) {
    return bad_input("--measure-only: nothing to measure; needed a command behind --");
  }
  Job job;
  Result<AnalysisOptions> asked = read_analysis_options(invocation, {});
  if (!asked) {
    return asked.error();
  }
  job.asked = std::move(*asked);
  const Result<void> opened = invocation.command().empty() ? open_recording(invocation, job)
                                                           : open_command(invocation, job);
  if (!opened) {
    return opened.error();
  }
  return with_space(invocation, std::move(job));
}

RecordHeader header_of(Job& job, const Invocation& invocation) {
  const DeviceInfo& device = job.device().info();
  const WorkloadInfo& workload = job.workload().info();
  RecordHeader header;
  header.device_id = device.id.text();
  header.device = device.name;
  header.limits = device.limits;
  header.provenance = device.simulated ? Provenance::simulated : Provenance::measured;
  header.workload = workload.name;
  header.labels = workload.labels;
  header.command = invocation.command();
  header.knobs = {job.space.knob};
  for (const Knob& each : job.workload().knobs()) {
    header.knobs.push_back(each);
  }
  header.keep_percent = job.asked.keep_percent;
  header.reference = text(job.asked.reference);
  return header;
}

// A job tells its steps when it prints them, and a GPU works behind its back: single steps look
// uneven where their speed is steady. On sim:duty it is stopped in turns, on processors that
// others use too, and waiting longer makes nothing steadier (docs/results/duty.md).
MeterRules rules_of(const Job& job) {
  MeterRules rules;
  if (!job.command) {
    return rules;
  }
  rules.window.min_duration = Seconds(5);
  rules.window.stretch = Seconds(1);
  rules.window.mean_step_time = true;
  if (job.command->devices.duty) {
    rules.warm_up = {Seconds(2), Seconds(4), Seconds(0.5), 0.05, 0.5};
    rules.settle = {Seconds(1), Seconds(3), Seconds(0.4), 0.1, 0.5};
    rules.window.min_duration = Seconds(4);
    rules.window.max_throttled = 0.02;
    rules.window.max_variation = 100;
    rules.window.max_energy_gap = 0.1;
  }
  return rules;
}

Error dead(Job& job) {
  return {ErrorKind::workload,
          fmt::format("{}: the network is dead (its numbers are not finite): no figure of it "
                      "counts",
                      job.workload().info().name)};
}

Result<void> measure(Job& job, const GridSearch& search, RecordFile& file) {
  std::optional<ScopedLimitGuard> scoped;
  if (job.simulation) {
    Result<ScopedLimitGuard> guard = ScopedLimitGuard::hold(job.simulation->limit);
    if (!guard) {
      return guard.error();
    }
    scoped.emplace(std::move(*guard));
  }
  LimitGuard* guard = scoped ? static_cast<LimitGuard*>(&*scoped) : job.command->guardian.get();
  handle_interruptions();
  const SteadyClock wall;
  ProgressLine progress(wall, std::cerr, stderr_progress_style());
  Tuner tuner({job.clock(), job.device(), job.workload(), guard, job.clamped}, rules_of(job),
              interruption_is_asked);
  const auto tell = [&](const Measurement& latest) -> Result<void> {
    progress.update({static_cast<double>(file.measured.size()),
                     static_cast<double>(search.expected_windows()), text(latest.setting)});
    if (file.writer) {
      if (const Result<void> written = file.writer->append(latest); !written) {
        return written.error();
      }
    }
    if (latest.numerical_state != NumericalState::dead) {
      return {};
    }
    // Other combinations may live.
    return search.combinations() > 1 ? Result<void>() : dead(job);
  };
  return tuner.run(search, file.measured, tell);
}

// Asks `of_each` for the limits of every combination of the command's knobs, if it has any.
GridSearch for_each_combination(const Job& job, std::unique_ptr<Search> of_each) {
  std::vector<GridAxis> axes;
  if (job.command) {
    for (const KnobValues& each : job.command->knobs) {
      axes.push_back({each.knob, each.values});
    }
  }
  return {std::move(axes), std::move(of_each)};
}

Result<void> run_search(const Invocation& invocation,
                        Job& job,
                        std::unique_ptr<Search> of_each) {
  const GridSearch search = for_each_combination(job, std::move(of_each));
  if (job.command) {
    const std::string plan =
        command_job_plan(invocation, search.expected_windows(), search.combinations());
    if (invocation.has("--dry-run")) {
      return print(plan + "\n");
    }
    remark(plan);
  }
  const RecordHeader header = header_of(job, invocation);
  Result<RecordFile> file = open_record(invocation, header);
  if (!file) {
    return file.error();
  }
  if (job.simulation) {
    job.simulation->workload.go_on_after(file->measured.size());
  }
  const Result<void> done = measure(job, search, *file);
  if (!done) {
    Error error = done.error();
    if (error.kind == ErrorKind::interrupted && file->writer) {
      error.message += fmt::format("; {} windows are in {}, go on with --resume",
                                   file->measured.size(), *invocation.get("--record"));
    }
    return error;
  }
  if (std::none_of(file->measured.begin(), file->measured.end(),
                   [](const Measurement& each) { return each.counts(); })) {
    const Notes notes = file->measured.empty() ? Notes{} : file->measured.back().notes;
    if (!file->measured.empty()) {
      const NumericalState state = file->measured.back().numerical_state;
      if (state == NumericalState::dead) {
        return dead(job);
      }
      if (state == NumericalState::stalled) {
        return Error{ErrorKind::workload,
                     fmt::format("{}: its loss is the same to the last digit in every window: "
                                 "it learns nothing, and no figure of it counts",
                                 header.workload)};
      }
    }
    return Error{ErrorKind::workload,
                 fmt::format("{}: no window counts: {}", header.workload,
                             notes.empty() ? "nothing was measured" : sentence(notes.front()))};
  }
  // The same path as reading the record again, so that both give the same bytes.
  const Record record{header, std::move(file->measured), false};
  const Result<Verdict> verdict = analyze(all_series(record), job.asked);
  if (!verdict) {
    return verdict.error();
  }
  return show(invocation, *verdict,
              verdict_document(*verdict, "Power limits of " + record.header.device));
}

// The limit whose speed is 100 %. A search must know it before it measures.
Result<double> reference_of(Job& job) {
  if (job.asked.reference == Reference::top) {
    return job.space.max;
  }
  const auto& preset = job.device().info().limits->preset;
  if (job.asked.reference == Reference::preset && preset) {
    return preset->value();
  }
  return bad_input(fmt::format(
      "tune --reference {}: {}; needed top, or record with --record and use analyze "
      "--reference {}",
      text(job.asked.reference),
      job.asked.reference == Reference::peak ? "the fastest limit is known only afterwards"
                                             : "the card does not tell its default limit",
      text(job.asked.reference)));
}

Result<double> read_repeats(const Invocation& invocation, double otherwise) {
  constexpr double kMostRepeats = 1000;
  return invocation.whole("--repeats", otherwise, 1, kMostRepeats);
}

// --measure-only: the limit is left as it was found.
Result<void> run_at_one_limit(const Invocation& invocation, Job& job) {
  constexpr double kUsualRepeats = 3;
  const Result<double> repeats = read_repeats(invocation, kUsualRepeats);
  if (!repeats) {
    return repeats.error();
  }
  if (invocation.has("--limits")) {
    return bad_input("--limits with --measure-only, which leaves the limit alone; needed one");
  }
  return run_search(invocation, job,
                    std::make_unique<ListSearch>(job.space.knob, std::vector{job.space.max},
                                                 static_cast<int>(*repeats), false));
}

Result<void> run_tune(const Invocation& invocation) {
  Result<Job> job = read_job(invocation);
  if (!job) {
    return job.error();
  }
  if (invocation.has("--measure-only")) {
    return run_at_one_limit(invocation, *job);
  }
  SearchBudget budget;
  constexpr double kFewest = 4;
  constexpr double kMost = 200;
  const Result<double> most = invocation.whole("--max-limits", budget.limits, kFewest, kMost);
  if (!most) {
    return most.error();
  }
  budget.windows += static_cast<int>(*most) - budget.limits;
  budget.limits = static_cast<int>(*most);
  const Result<double> reference = reference_of(*job);
  if (!reference) {
    return reference.error();
  }
  return run_search(invocation, *job,
                    std::make_unique<ReferencedSearch>(
                        job->space.knob, *reference,
                        std::make_unique<LimitSearch>(job->space, *reference,
                                                      job->asked.keep_percent, budget)));
}

// "150:480:10", or "200,250,300"; all limits of the card in steps if nothing is said.
Result<std::vector<double>> read_limits(const Invocation& invocation, const LimitSpace& space) {
  const auto given = invocation.get("--limits");
  if (!given) {
    return space.values();
  }
  std::string spaced = *given;
  const bool is_range = spaced.find(':') != std::string::npos;
  std::replace(spaced.begin(), spaced.end(), ':', ',');
  Invocation values;
  values.add("--limits", spaced);
  Result<std::vector<double>> numbers = values.numbers("--limits", {});
  if (!numbers || !is_range) {
    return numbers;
  }
  if (numbers->size() != 3 || (*numbers)[2] <= 0 || (*numbers)[0] > (*numbers)[1]) {
    return bad_input(fmt::format("--limits {}: needed LOW:HIGH:STEP or W,W,W", *given));
  }
  LimitSpace range{space.knob, (*numbers)[0], (*numbers)[1], (*numbers)[2]};
  constexpr double kMost = 10000;
  if ((range.max - range.min) / range.step > kMost) {
    return bad_input(fmt::format("--limits {}: over {:g} limits", *given, kMost));
  }
  return range.values();
}

// Limits outside the card's range become its ends, once each, with a remark.
std::vector<double> clamp_limits(const std::vector<double>& limits, Job& job) {
  const LimitSpace& space = job.space;
  std::vector<double> inside;
  std::vector<double> outside;
  for (const double limit : limits) {
    const double clamped = std::clamp(limit, space.min, space.max);
    if (clamped != limit) {
      outside.push_back(limit);
      job.clamped.push_back(clamped);
    }
    if (std::find(inside.begin(), inside.end(), clamped) == inside.end()) {
      inside.push_back(clamped);
    }
  }
  if (!outside.empty()) {
    remark(fmt::format(
        "--limits: {:g} W {} outside the card's {:g} to {:g} W; the nearest it takes is used",
        fmt::join(outside, ", "), outside.size() == 1 ? "is" : "are", space.min, space.max));
  }
  return inside;
}

Result<void> run_sweep(const Invocation& invocation) {
  Result<Job> job = read_job(invocation);
  if (!job) {
    return job.error();
  }
  if (invocation.has("--measure-only")) {
    return run_at_one_limit(invocation, *job);
  }
  Result<std::vector<double>> limits = read_limits(invocation, job->space);
  if (!limits) {
    return limits.error();
  }
  const Result<double> repeats = read_repeats(invocation, 1);
  if (!repeats) {
    return repeats.error();
  }
  const std::string order = invocation.get("--order").value_or("interleaved");
  std::vector<double> inside = clamp_limits(*limits, *job);
  if (order == "ascending") {
    std::sort(inside.begin(), inside.end());
  } else if (order == "descending" || order == "interleaved") {
    std::sort(inside.rbegin(), inside.rend());
  } else {
    return bad_input(
        fmt::format("--order {}: needed interleaved, ascending or descending", order));
  }
  // Every limit of the list is a choice of the user's: no step between them is open.
  job->space.knob = power_limit_knob();
  const double top = *std::max_element(inside.begin(), inside.end());
  std::unique_ptr<Search> search = std::make_unique<ListSearch>(
      job->space.knob, std::move(inside), static_cast<int>(*repeats), order == "interleaved");
  if (order == "interleaved") {
    search = std::make_unique<ReferencedSearch>(job->space.knob, top, std::move(search));
  }
  return run_search(invocation, *job, std::move(search));
}

std::vector<Option> common_options() {
  std::vector<Option> options = {
      {"--device", "DEVICE",
       "for a command the card it uses: gpu:0, GPU-<uuid>, or sim:duty, which slows real "
       "processes; without one sim:rtx3090, the recorded study played back (the default), or "
       "sim:FILE.csv"},
      {"--workload", "NAME", "what runs on it: study:train-fp32; a wrong name lists them all"},
      {"--step", "WATTS", "step of the limits; default 10"},
      {"--record", "FILE.jsonl", "write every window here as it ends (docs/record.md)"},
      {"--resume", "", "go on with the record if it exists"},
      {"--measure-only", "",
       "measure a command at the limit that is in force and write none; needs no privilege"},
  };
  for (const auto& more :
       {share_options(), output_options(), simulation_options(), command_job_options()}) {
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

}  // namespace

Command tune_command() {
  Command command;
  command.name = "tune";
  command.summary = "find the best limits in few windows";
  command.arguments = "[-- COMMAND...]";
  command.description =
      "Measures a workload under few power limits, each chosen by what is known so far, until "
      "the limits that keep 80, 90 and 95 % of the speed and the one with the least energy are "
      "found or the budget is spent; says \"not resolvable\" where the figures allow more than "
      "one answer. The limit that was found at the start is put back on every way out.";
  command.options = common_options();
  command.options.push_back(
      {"--max-limits", "N", "how many different limits may be measured; default 12"});
  command.examples = {
      {"halfwatt tune --workload study:train-amp-fp16 --record run.jsonl",
       "the limits for one workload of the recorded study, every window kept"},
      {"halfwatt tune --device sim:mine.csv --noise 0.5 --report mine.html",
       "how well a search would do on a curve of your own, with more noise"},
      {"halfwatt tune --progress tqdm --record run.jsonl -- python train.py",
       "the limits for a program of your own, on the card of this machine"},
  };
  command.run = run_tune;
  return command;
}

Command sweep_command() {
  Command command;
  command.name = "sweep";
  command.summary = "measure a grid of limits";
  command.arguments = "[-- COMMAND...]";
  command.description =
      "Measures every limit of a grid or list. The order is interleaved and the highest limit "
      "is "
      "measured first, as every fifth window, and last, so that a card that warms up does not "
      "look like one that likes low limits.";
  command.options = common_options();
  command.options.push_back(
      {"--limits", "LIST", "LOW:HIGH:STEP or W,W,W; default: all the card takes"});
  command.options.push_back({"--repeats", "N", "windows of each limit; default 1"});
  command.options.push_back(
      {"--order", "ORDER", "interleaved (the default), ascending or descending"});
  command.examples = {
      {"halfwatt sweep --workload study:train-fp32 --limits 200:480:20 --format json",
       "a grid, as a verdict for a script"},
      {"halfwatt sweep --knob bs=32,64 --items {bs} -- python t.py --bs {bs}",
       "limits and batch sizes of a program of your own"},
  };
  command.run = run_sweep;
  return command;
}

}  // namespace halfwatt

#include "cli/command_job.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/interruptions.h"
#include "cli/output.h"
#include "guard/privilege.h"

namespace halfwatt {
namespace {

// Of one window, settling included: 10, 13, 16 and 21 s on two H200s; the middle of these.
constexpr double kSecondsOfWindow = 14;
constexpr double kSecondsOfStart = 15;  // the warm-up, and what the command needs itself

constexpr std::string_view kNoProgress = "none";

Result<Progress> open_progress(const Invocation& invocation, const std::string& folder) {
  ProgressOptions options;
  options.step_regex = invocation.get("--progress-regex");
  options.loss_regex = invocation.get("--loss-regex");
  options.preset = invocation.get("--progress");
  if (options.preset == kNoProgress) {
    options.preset.reset();
  }
  options.folder = folder;
  return Progress::open(options);
}

std::string short_name(const std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 60;
  std::string name;
  for (const std::string& word : words) {
    name += (name.empty() ? "" : " ") + word;
  }
  return name.size() > kLongest ? name.substr(0, kLongest) + "..." : name;
}

Result<std::vector<KnobValues>> read_knobs(const Invocation& invocation) {
  std::vector<KnobValues> knobs;
  for (const std::string& typed : invocation.all("--knob")) {
    Result<KnobValues> knob = parse_knob(typed);
    if (!knob) {
      return knob.error();
    }
    knobs.push_back(std::move(*knob));
  }
  return knobs;
}

Result<ProcessOptions> read_process_options(const Invocation& invocation,
                                            const std::vector<KnobValues>& knobs) {
  ProcessOptions options;
  Result<CommandTemplate> command = CommandTemplate::make(invocation.command(), knobs);
  if (!command) {
    return command.error();
  }
  options.command = std::move(*command);
  options.knobs = knobs;
  if (const auto items = invocation.get("--items")) {
    Result<ItemsExpression> read = ItemsExpression::parse(*items, knobs);
    if (!read) {
      return read.error();
    }
    options.items = std::move(*read);
  }
  constexpr double kMostPatience = 86400;
  const Result<double> patience =
      invocation.number("--patience", options.patience.value(), 0.1, kMostPatience);
  if (!patience) {
    return patience.error();
  }
  options.patience = Seconds(*patience);
  options.unit = invocation.get("--unit").value_or("step");
  options.power_only = invocation.get("--progress") == kNoProgress;
  options.name = short_name(invocation.command());
  options.tell = [](const std::string& sentence) { remark(sentence); };
  if (invocation.has("--show-output")) {
    options.tee = [](std::string_view bytes) {
      std::fwrite(bytes.data(), 1, bytes.size(), stderr);
    };
  }
  return options;
}

Result<void> open_devices_of(CommandJob& job,
                             const Invocation& invocation,
                             GuardianProcess called) {
  Result<JobDevices> devices = find_job_devices(invocation, std::nullopt, job.clock);
  if (!devices) {
    return devices.error();
  }
  job.devices = std::move(*devices);
  if (const Result<void> fit = check_devices(invocation, job.devices); !fit) {
    return fit.error();
  }
  if (job.devices.list) {
    Result<std::unique_ptr<Device>> cards = open_cards(invocation, job.devices);
    if (!cards) {
      return cards.error();
    }
    job.real = std::move(*cards);
  }
  if (!invocation.has("--measure-only")) {
    Result<std::unique_ptr<GuardianClient>> guardian =
        hold_limits(invocation, job.devices, std::move(called));
    if (!guardian) {
      return guardian.error();
    }
    job.guardian = std::move(*guardian);
  }
  return {};
}

// The guardian continues the copy if we are killed while both are stopped.
std::function<void(pid_t)> stop_handler(GuardianClient* guardian) {
  return [guardian](pid_t group) {
    if (guardian != nullptr) {
      if (const Result<void> done = guardian->continue_group(group); !done) {
        remark(done.error().message);
      }
    }
    stop_ourselves();
  };
}

}  // namespace

Result<std::unique_ptr<CommandJob>> open_command_job(const Invocation& invocation) {
  auto job = std::make_unique<CommandJob>();
  Result<std::vector<KnobValues>> knobs = read_knobs(invocation);
  if (!knobs) {
    return knobs.error();
  }
  job->knobs = std::move(*knobs);
  Result<ProcessOptions> options = read_process_options(invocation, job->knobs);
  if (!options) {
    return options.error();
  }
  Result<GuardianProcess> called = call_guardian(invocation, std::nullopt);
  if (!called) {
    return called.error();
  }
  // Before the folder is made, which the command writes to; the guardian is root all the same.
  if (const Result<void> dropped = drop_privileges(); !dropped) {
    return dropped.error();
  }
  Result<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::make();
  if (!folder) {
    return folder.error();
  }
  job->folder = std::move(*folder);
  Result<Progress> progress = open_progress(invocation, job->folder->path());
  if (!progress) {
    return progress.error();
  }
  if (const Result<void> opened = open_devices_of(*job, invocation, std::move(*called));
      !opened) {
    return opened.error();
  }
  options->environment = job->devices.environment;
  options->on_group = group_handler(job->devices, job->guardian.get());
  if (job->guardian) {
    options->on_copy = [guardian = job->guardian.get()](const std::string& mark, int kill) {
      guardian->end_copy(mark, kill);
    };
  }
  handle_stops();
  options->interrupted = interruption_is_asked;
  options->stop = {stop_is_asked, stop_handler(job->guardian.get()), times_continued};
  job->workload =
      std::make_unique<ProcessWorkload>(std::move(*options), std::move(*progress), job->clock);
  return job;
}

std::string command_job_plan(const Invocation& invocation, int windows, std::size_t starts) {
  const double seconds =
      windows * kSecondsOfWindow + static_cast<double>(starts) * kSecondsOfStart;
  return fmt::format(
      "a throw-away copy of `{}` is run and ended: {} windows, {} {}, about {:g} min; Ctrl-C "
      "is "
      "safe",
      short_name(invocation.command()), windows, starts, starts == 1 ? "start" : "starts",
      std::ceil(seconds / 60));
}

std::vector<Option> command_job_options() {
  std::vector<Option> options = {
      {"--knob", "NAME=A,B", "values for {NAME} in the command, which is started anew for each",
       true},
      {"--items", "N", "items of one step: 32, {batch}, 2*{batch}; default 1"},
      {"--unit", "WORD", "what an item is: image, token"},
      {"--progress", "PRESET",
       "how the command tells its steps: tqdm, hf-trainer, lightning; default: whatever fits; "
       "none: "
       "watts alone are measured, and nothing is advised"},
      {"--progress-regex", "RE2", "or an expression on its output with a group named step"},
      {"--loss-regex", "RE2", "an expression with a group named loss"},
      {"--patience", "SECONDS", "how long the first step may take; default 300"},
      {"--show-output", "", "show the command's output on standard error"},
      {"--dry-run", "", "say what would be done, and do nothing"},
  };
  for (const Option& each : job_device_options()) {
    if (each.name != "--device") {
      options.push_back(each);
    }
  }
  return options;
}

}  // namespace halfwatt

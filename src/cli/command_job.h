#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/job_device.h"
#include "cli/scratch_folder.h"
#include "measure/process_workload.h"

namespace halfwatt {

/// A throw-away copy of a user's command on a card, ready to be measured: `tune ... -- CMD`.
/// Members in the order of their making: the command ends before its limits are put back.
struct CommandJob {
  SteadyClock clock;
  JobDevices devices;
  std::unique_ptr<ScratchFolder> folder;     ///< of its progress
  std::unique_ptr<GuardianClient> guardian;  ///< absent with --measure-only
  std::unique_ptr<Device> real;              ///< the card, or all of them; absent for sim:duty
  std::vector<KnobValues> knobs;
  std::unique_ptr<ProcessWorkload> workload;

  Device& device() { return real ? *real : static_cast<Device&>(*devices.duty); }
};

/// Opens what the flags say; nothing is started and no limit written yet. Errors: bad flags, no
/// device, no permission to set its limit.
Result<std::unique_ptr<CommandJob>> open_command_job(const Invocation& invocation);

/// What is about to happen, in one line: `windows` of them, on how many starts.
std::string command_job_plan(const Invocation& invocation, int windows, std::size_t starts);

/// The flags that only a command takes.
std::vector<Option> command_job_options();

}  // namespace halfwatt

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/scratch_folder.h"
#include "device/devices.h"
#include "device/duty.h"
#include "guard/guardian_client.h"
#include "measure/spawn.h"

namespace halfwatt {

/// What a user's command runs on, as `--device` names it: cards, or sim:duty.
struct JobDevices {
  std::vector<DeviceId> ids;
  std::vector<std::string> cards;         ///< as the guardian calls them
  std::unique_ptr<ScratchFolder> folder;  ///< of sim:duty's limit, where nothing may stay
  std::unique_ptr<DutyCard> duty;         ///< where it is sim:duty
  std::unique_ptr<DeviceList> list;       ///< of this machine, where it is not
  Environment environment;                ///< for the command, so that it uses these cards
};

/// Whether `id` is the card that acts on real processes.
bool is_duty(const DeviceId& id);

/// Starts the guardian that hold_limits() will need: first of all, while nobody has looked at
/// NVML. It gets privilege unless the command line names none but simulated cards. None is
/// started where nothing will be written (--dry-run, --measure-only). Errors: it cannot be
/// started.
Result<GuardianProcess> call_guardian(const Invocation& invocation,
                                      const std::optional<std::string>& named);

/// Opens what `--device` says, `named` if absent; without both, what CUDA shows the command.
/// `clock` outlives it. Errors: no such device, or as choose_cards().
Result<JobDevices> find_job_devices(const Invocation& invocation,
                                    const std::optional<std::string>& named,
                                    const Clock& clock);

/// Looks whether the cards are fit for a job, before anything is started or written, and shows
/// what the user should know first. Errors: as preflight().
Result<void> check_devices(const Invocation& invocation, const JobDevices& devices);

/// Opens the cards, several as one device; processes that this one starts are the job's own.
/// Not for sim:duty. Errors: a card is lost, or one limit does not fit all.
Result<std::unique_ptr<Device>> open_cards(const Invocation& invocation,
                                           const JobDevices& devices);

/// What becomes of the process group of a command on `devices`: sim:duty acts on it, and the
/// guardian sees to it that it does not stay stopped. Both outlive the function.
std::function<void(std::optional<pid_t>)> group_handler(JobDevices& devices,
                                                        GuardianClient* guardian);

/// Lets `guardian` hold the cards; `--state-dir` and `--max-limit` are obeyed, and its remarks
/// are shown. With --dry-run the limits are only read. Errors: as GuardianClient::start().
Result<std::unique_ptr<GuardianClient>> hold_limits(const Invocation& invocation,
                                                    const JobDevices& devices,
                                                    GuardianProcess guardian);

/// The flags that these read.
std::vector<Option> job_device_options();

}  // namespace halfwatt

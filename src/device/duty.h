#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/limit_file.h"

namespace halfwatt {

/// Constants of the card behind `sim:duty`, all invented. While its processes may run a share d
/// of the time it draws idle + (demand - idle) d^2: so the speed under a limit L is
/// d(L) = min(1, sqrt((L - idle) / (demand - idle))), which is concave as that of real cards,
/// and the energy of a step, L / d(L), is least at twice the idle draw.
struct DutyModel {
  LimitRange limits{Watts(100), Watts(350), Watts(350)};
  Watts idle{60};
  Watts demand{300};
  Seconds period{0.02};  ///< on and off once; varied, so that no rhythm of the job fits it
  double period_jitter = 0.25;
  Seconds smoothing{0.3};  ///< of the share that the draw follows
  Seconds energy_tick{0.1};
  Celsius ambient{25};
  double kelvin_per_watt = 0.05;
  Seconds thermal_time{1};
};

/// The share of time that the processes may run under `limit`; rises with it, up to 1.
double duty(const DutyModel& model, Watts limit);

/// What became of the time since a group was given to the card.
struct DutyShare {
  Seconds allowed;  ///< it could run
  Seconds elapsed;
};

/// A simulated card that acts on real processes: it stops and continues a process group in
/// short turns, so that a lower limit truly slows an unmodified command. Its limit is in a file
/// that processes share, as a real card's is in the card.
///
/// The time that the group could run is measured, and every turn makes up for the last, since
/// on a busy machine none is as long as it should be. It is what the draw follows: the card
/// does not see whether the group uses its time. Processes that leave the group are not slowed.
/// Where others want the same processors, a group is slowed by less than its share: the
/// scheduler lets it catch up. (Giving it precedence instead would starve everybody else.)
/// A group that is let go, whatever the reason, is left running; of a death of this process
/// only another one can take care (the guardian).
class DutyCard final : public Device {
 public:
  /// Opens the card whose limit is in `path`; makes the file if it is not there. Errors: the
  /// file cannot be used.
  static Result<LimitFile> open_limit(const std::filesystem::path& path,
                                      const DutyModel& model = {});

  /// `clock` is a steady clock of the machine, and outlives the card.
  DutyCard(DeviceId id, DutyModel model, LimitFile limit, const Clock& clock);
  DutyCard(const DutyCard&) = delete;
  DutyCard& operator=(const DutyCard&) = delete;
  ~DutyCard() override;

  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override;
  std::optional<Joules> energy() override;

  /// The process group that runs on the card from now on; nullopt lets go of the last one,
  /// which is running when this returns. To be called before the group's number can become
  /// somebody else's.
  void set_group(std::optional<pid_t> group);
  /// Since the group was given.
  DutyShare share();
  /// For guard/ only.
  LimitFile& limit_file() { return limit_; }

 private:
  void run();
  void turn(std::unique_lock<std::mutex>& lock);
  void wait_until(std::unique_lock<std::mutex>& lock, Seconds time);
  void set_stopped(bool stopped);
  void advance();
  Watts draw() const;

  DeviceInfo info_;
  DutyModel model_;
  LimitFile limit_;
  const Clock* clock_;
  Rng rng_{1};

  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  bool ends_ = false;
  std::optional<pid_t> group_;
  unsigned gifts_ = 0;  ///< how often a group was given or taken: the turn is over then
  bool stopped_ = false;
  DutyShare share_;
  Seconds debt_;       ///< time that the group ran too long, to be taken off the next turns
  Seconds since_;      ///< the state below is of this time
  double recent_ = 0;  ///< share of the last moments
  Joules used_{0};
  Joules used_at_tick_{0};
  Celsius temperature_;
  Seconds capped_{0};
  std::thread thread_;  ///< last: it uses everything else
};

}  // namespace halfwatt

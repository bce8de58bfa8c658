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
#include "device/duty_pace.h"
#include "device/group_time.h"
#include "device/limit_file.h"

namespace halfwatt {

/// Constants of the card behind `sim:duty`, all invented. It is a card as fast as a part of one
/// processor: so its speed does not depend on what others do with the machine, as that of a
/// real card does not. Its draw rises from idle to demand with its speed, on two straight lines
/// that meet at the bend: below it watts buy much speed, above it little, as on cards whose
/// voltage has a floor. So the speed under a limit is concave, the energy of a step is least at
/// the bend, and 10 W are worth over 4 % of the speed between 80 and 95 %.
struct DutyModel {
  LimitRange limits{Watts(100), Watts(350), Watts(350)};
  Watts idle{60};
  Watts bend{140};
  double share_at_bend = 0.75;
  Watts demand{200};
  /// Processors that its processes have at full speed: less than what a process gets that
  /// shares two of them with nine others.
  double processors = 0.2;
  Seconds period{0.05};  ///< on and off once; varied, so that no rhythm of the job fits it
  double period_jitter = 0.2;
  Seconds smoothing{0.2};  ///< of the speed that the draw follows
};

/// The share of its full speed that a job has under `limit`; rises with it, up to 1.
double duty(const DutyModel& model, Watts limit);
/// What the card draws at `share` of its full speed: duty() the other way round.
Watts draw(const DutyModel& model, double share);

/// What became of the time since a group was given to the card.
struct DutyShare {
  Seconds allowed;  ///< it could run
  Seconds run;      ///< processor time of all its members; to the end of the last turn
  Seconds elapsed;
};

/// A simulated card that acts on real processes: it stops and continues a process group in
/// short turns, so that a lower limit truly slows an unmodified command. Its limit is in a file
/// that processes share, as a real card's is in the card.
///
/// In every turn the group may run until it has used the processor time that its speed allows,
/// and every turn makes up for the last. Time alone would not do: where others want the same
/// processors, a group that slept is given more than its part of them for some 50 ms after it
/// is continued (the scheduler owes it, and weighs it by its load of before), and then less.
/// The draw follows what the group uses, so that one that sleeps draws next to nothing. Where
/// others leave too little for its speed, the card says that it is throttled. A limit slows a
/// job that needs less than it allows as little as on a real card. Processes that leave the
/// group are not slowed. The counter of energy moves with each turn. There is no thermometer:
/// nothing about the card is slow.
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
  void run_till(std::unique_lock<std::mutex>& lock, Seconds end);
  void wait_until(std::unique_lock<std::mutex>& lock, Seconds time);
  bool is_over(unsigned gifts) const { return ends_ || gifts_ != gifts; }
  void take_in_use();
  void close_turn(Seconds elapsed);
  void look();
  void set_stopped(bool stopped);
  void advance();

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
  std::optional<GroupTime> time_;
  DutyPace pace_;
  DutyShare share_;
  Seconds since_;        ///< the state below is of this time
  Seconds run_at_turn_;  ///< of the group, at the end of the last turn
  Seconds lost_;         ///< processor time that it left unused since the last look
  Seconds looked_;       ///< when the members were looked for
  double recent_ = 0;    ///< share of the full speed in the last turns
  Joules used_{0};
  Joules used_at_tick_{0};  ///< as the counter shows it
  Seconds capped_{0};
  Seconds starved_{0};
  std::thread thread_;  ///< last: it uses everything else
};

}  // namespace halfwatt

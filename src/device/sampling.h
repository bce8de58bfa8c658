#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "device/device.h"
#include "device/sample_ring.h"

namespace halfwatt {

struct SamplingRules {
  Seconds period{0.1};       ///< of quick readings; sensors refresh every 100 ms
  Seconds full_period{1};    ///< of all signals
  Seconds energy_period{1};  ///< of the energy counter, one call of which can take 4 ms
  Seconds stale_after{1};    ///< without a new sample
  Seconds patience{1};       ///< how long stopping waits for a call that blocks
  std::size_t kept = 600;    ///< samples of each device
};

/// What is to be read from one device in one round.
struct Due {
  bool full = false;
  bool energy = false;
};

/// When what is due for one device. The slow readings of several devices fall into different
/// rounds, so that no round is long.
class SamplingPlan {
 public:
  /// `share`: this device's place among all, from 0 to below 1.
  SamplingPlan(const SamplingRules& rules, double share) : rules_(rules), share_(share) {}
  /// What is due in the round at `now`; called once a round.
  Due due(Seconds now);

 private:
  SamplingRules rules_;
  double share_;
  std::optional<Seconds> next_full_;
  std::optional<Seconds> next_energy_;
};

/// How a device is doing, for whoever looks at its samples.
struct SamplingState {
  std::optional<StampedSample> latest;
  /// No new sample came for a while: that of the last one, or of the start without one.
  std::optional<Seconds> stale_since;
  bool blocked = false;        ///< a call to this very device has not returned
  std::optional<Error> error;  ///< the last reading failed: the device is lost
};

/// The samples of all devices, written by one thread and read by others. Its lock is held only
/// to copy: never during a call to a device.
class SampleStore {
 public:
  SampleStore(std::size_t devices, const SamplingRules& rules, Seconds now);

  void call_begins(std::size_t device, Seconds now);
  void add(std::size_t device, const StampedSample& sample);
  void fail(std::size_t device, Error error);

  SamplingState state(std::size_t device, Seconds now) const;
  /// The samples after `time`, oldest first; the ring holds `kept` of them.
  std::vector<StampedSample> since(std::size_t device, Seconds time) const;
  std::size_t devices() const { return channels_.size(); }

 private:
  struct Channel {
    SampleRing ring;
    std::optional<Seconds> call_since;
    std::optional<Error> error;
  };

  SamplingRules rules_;
  Seconds begun_;
  mutable std::mutex mutex_;
  std::vector<Channel> channels_;
};

/// Samples one device: which readings are due, what was read in full last.
class Sampling {
 public:
  Sampling(Device& device, const SamplingRules& rules, double share)
      : device_(&device), plan_(rules, share) {}

  /// Reads what is due and puts it into `store`. A signal that a quick reading does not tell
  /// keeps the value of the last full one; energy stands only in samples that read it.
  void round(const Clock& clock, SampleStore& store, std::size_t index);

 private:
  Device* device_;
  SamplingPlan plan_;
  std::optional<Sample> full_;
};

}  // namespace halfwatt

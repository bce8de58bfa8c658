#pragma once

#include <condition_variable>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "device/sampling.h"

namespace halfwatt {

/// A thread that samples devices until it is stopped.
///
/// It owns the devices: whoever needs readings at an exact moment, as a window's edge does,
/// opens the card a second time and is never delayed by the sampler, since no lock is held
/// during a call. All devices share one thread, so a call that blocks makes them all stale; the
/// state says which one blocks.
class Sampler {
 public:
  explicit Sampler(std::vector<std::unique_ptr<Device>> devices, SamplingRules rules = {});
  /// Stops.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Ends the thread: at once where it waits, after the call to a device in which it is. Where
  /// that blocks for longer than `patience`, the thread is left behind with what it owns, ends
  /// when the call returns, and false is given. Harmless when called twice.
  bool stop();

  std::size_t devices() const;
  SamplingState state(std::size_t device) const;
  /// The samples after `time`, oldest first.
  std::vector<StampedSample> since(std::size_t device, Seconds time) const;

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the thread, which may have to be left behind
  std::thread thread_;
};

}  // namespace halfwatt

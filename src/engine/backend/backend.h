#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/plan/plan.h"

namespace halfwatt {

/// Memory of a device, given back when it is destroyed. `data` is an address on the device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<std::byte> memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }
  /// Some of it, which keeps all of it.
  Buffer part(std::size_t offset, std::size_t bytes) const {
    return {std::shared_ptr<std::byte>(memory_, memory_.get() + offset), bytes};
  }

 private:
  std::shared_ptr<std::byte> memory_;  ///< shared by the plans that bind a state
  std::size_t bytes_ = 0;
};

/// Where the values of one device of a plan lie: the arena, and states and inputs by their
/// index in the plan; those of other devices are null, but for what a transfer reads.
struct Bound {
  std::byte* arena = nullptr;
  std::vector<std::byte*> states;
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> other_arenas;  ///< by device of the plan
};

/// How far the devices of a plan have come in a run; what one waits on another with.
class StepProgress {
 public:
  virtual ~StepProgress() = default;
  /// Returns when step `wait.step` of device `wait.device` is done. Throws Failure if that
  /// device gave up.
  virtual void wait_for(const Wait& wait) = 0;
  /// Says that this step is done.
  virtual void done(int device, int step) = 0;
};

/// A device's part of a plan, ready to run.
class Executable {
 public:
  virtual ~Executable() = default;
  /// All steps in order. Throws Failure if the device is lost, with the name of the step where
  /// steps run one by one; where they run as one, all are done at once, at the end.
  virtual void run(StepProgress& progress) = 0;
  /// The same without waiting for the end, where the device goes on by itself. What is asked of
  /// it later comes after. `progress` hears of no step then.
  virtual void start(StepProgress& progress) { run(progress); }
};

/// The way of an input to its device, for values that come while the device still computes with
/// those before.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Where the next value is to be written, in memory of the host. Waits while two are still on
  /// their way. Throws Failure if the device is lost.
  virtual std::span<std::byte> next() = 0;
  /// Sends what was written there. What was started before does not see it, what comes later
  /// does.
  virtual void send() = 0;
};

/// Copies of some memory of a device, each as it was when it was asked for, which come while
/// the device goes on.
class Snapshots {
 public:
  static constexpr int kMost = 8;  ///< that are asked for and not dropped

  virtual ~Snapshots() = default;
  /// Asks for one more.
  virtual void take() = 0;
  /// Whether the oldest is there. Throws Failure if the device is lost.
  virtual bool is_there() = 0;
  /// The oldest, waited for; good until it is dropped. Throws Failure if the device is lost.
  virtual std::span<const std::byte> oldest() = 0;
  virtual void drop_oldest() = 0;
};

/// What runs plans on a device. Used by one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Target& target() const = 0;
  /// Uninitialised memory, aligned to kAlignment. Throws Failure if there is too little.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Bytes that are allocated now, in buffers of this backend.
  virtual std::size_t allocated() const = 0;
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;
  /// To `bytes` of an input at `to`. Takes as many bytes of the device again, and twice as many
  /// of the host. Throws Failure if there is too little memory.
  virtual std::unique_ptr<Feed> feed(std::byte* to, std::size_t bytes);
  /// Of `bytes` at `from`. Throws Failure if there is too little memory of the host.
  virtual std::unique_ptr<Snapshots> snapshots(const std::byte* from, std::size_t bytes);
  /// `plan` and what `bound` names outlive the executable.
  virtual std::unique_ptr<Executable> compile(const Plan& plan,
                                              int device,
                                              const Bound& bound) = 0;
};

/// The address of `place` for a device of a plan.
std::byte* address(const Place& place, const Bound& bound);

}  // namespace halfwatt

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/exec/states.h"

namespace halfwatt {

/// Plans ready to run on their devices, in as much memory as shared_footprint() says: all of
/// them bind the same states and, one at a time, the same arenas. After open() nothing more is
/// allocated on a device.
class Session {
 public:
  /// `backends`, one for each device of the plans, and `states` outlive it. Errors: no memory.
  static Result<std::unique_ptr<Session>> open(std::vector<Plan> plans,
                                               std::vector<Backend*> backends,
                                               States& states);

  const Plan& plan(int at) const { return programs_[static_cast<std::size_t>(at)].plan; }
  /// Sets an input of a plan for the runs to come. It must be of the input's type.
  void bind(int plan, std::string_view input, const TensorView& value);
  /// The same, written by `fill` where it is sent from. Waits for none of the runs that were
  /// started where the input is fed ahead.
  using Fill = std::function<void(const TensorView& value)>;
  void bind(int plan, std::string_view input, const Fill& fill);
  /// Whether a plan has that input.
  bool has_input(int plan, std::string_view input) const;
  /// Called after every step, by the thread of its device.
  using OnStep = std::function<void(int device, int step)>;
  /// Runs a plan once, on all devices. Errors: a device is lost, with the step's name.
  Result<void> run(int plan, const OnStep& on_step = {});
  /// A result of the last run of that plan.
  Tensor result(int plan, std::string_view name) const;

  /// The small results of a run: of up to kSmallResult bytes.
  class Numbers {
   public:
    int plan() const { return plan_; }
    Tensor result(std::string_view name) const;

   private:
    friend class Session;
    int plan_ = 0;
    const std::vector<PlanResult>* results_ = nullptr;
    std::vector<std::vector<std::byte>> bytes_;  ///< by device
  };
  /// Runs a plan and does not wait for it, where its device goes on by itself. At most
  /// Snapshots::kMost runs are started and not taken. Errors: as run(), perhaps those of a run
  /// before.
  Result<void> start(int plan);
  /// Runs that were started and not taken.
  int started() const { return static_cast<int>(started_.size()); }
  /// Whether the oldest of them is done. Errors: as run().
  Result<bool> is_done();
  /// Takes the oldest of them, waits for it. Errors: as run().
  Result<Numbers> take();

 private:
  struct Program {
    Plan plan;
    std::vector<Bound> bound;                  ///< by device
    std::vector<Buffer> inputs;                ///< by input
    std::vector<std::unique_ptr<Feed>> feeds;  ///< by input; null where it is not fed ahead
    std::vector<std::unique_ptr<Executable>> executables;
    std::vector<std::string> written;  ///< states
  };

  Session(std::vector<Backend*> backends, States& states)
      : backends_(std::move(backends)), states_(&states) {}
  void add(Plan plan);
  void compile();
  using RunDevice = std::function<void(std::size_t device, StepProgress& progress)>;
  Result<void> run_devices(const Program& program,
                           const OnStep& on_step,
                           const RunDevice& run_device);
  void check_copies(const Program& program) const;
  void note_written(const Program& program);

  std::vector<Backend*> backends_;
  States* states_;
  std::vector<Program> programs_;
  std::vector<Buffer> arenas_;                         ///< by device
  std::vector<std::unique_ptr<Snapshots>> snapshots_;  ///< by device: of the arena's numbers
  std::deque<int> started_;                            ///< plans, the oldest first
};

}  // namespace halfwatt

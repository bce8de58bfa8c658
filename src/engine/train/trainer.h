#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/image_set.h"
#include "engine/exec/session.h"
#include "engine/models/weights.h"
#include "engine/train/checkpoint.h"
#include "engine/train/evaluation.h"
#include "engine/train/numerical_watch.h"
#include "engine/train/recipe.h"

namespace halfwatt {

/// What a step did.
struct StepReport {
  std::int64_t attempt = 0;  ///< from 1; skipped steps count
  double loss = 0;           ///< mean over its micro-batches
  double gradient_norm = 0;
  double rate = 0;
  std::optional<double> scale;
  bool skipped = false;
  NumericalState state = NumericalState::unknown;
  std::string reason;  ///< where it is not live
  /// What goes on but is worth a look: an operand whose magnitude is not finite keeps its
  /// scale.
  std::vector<std::string> warnings;
};

/// The plans that a training of `recipe` on `target` needs: of a step (or a micro-batch), of an
/// evaluation and, with micro-batches, of the update. Errors: a pattern that matches no layer,
/// a node that the device refuses.
Result<std::vector<Plan>> training_plans(const TrainRecipe& recipe, const Target& target);

/// A model in training on one device.
class Trainer {
 public:
  /// `backend` outlives it. The parameters begin as timm's do, from the recipe's seed. Errors:
  /// a pattern that matches no layer, a node that the device refuses, too little memory.
  static Result<std::unique_ptr<Trainer>> open(const TrainRecipe& recipe, Backend& backend);

  /// Images that a step takes.
  std::int64_t step_size() const { return recipe_.batch * recipe_.micro_batches; }
  /// Of these, how many the step at hand has not taken yet: all, but in the midst of one.
  std::int64_t images_left() const {
    return recipe_.batch * (recipe_.micro_batches - progress_.part);
  }
  const TrainRecipe& recipe() const { return recipe_; }
  /// Steps that were started as a whole, skipped ones too: what a log of it may tell of once
  /// their reports are there.
  std::int64_t attempts() const { return progress_.attempt - (progress_.part > 0 ? 1 : 0); }
  /// Elements of all parameters, those included that do not learn.
  std::int64_t parameters() const { return parameters_; }
  NumericalState state() const { return watch_.memory().state; }
  States& states() { return states_; }

  /// Begins with the weights in a file instead, the averages too. Errors: as load_weights().
  Result<WeightsReport> begin_with(const std::filesystem::path& path, const FineTuning& how);

  /// One step, or the rest of one, on images_left() images. Errors: images or labels that are
  /// not what the model takes, and then nothing was done; the device is lost.
  Result<StepReport> step(const ImageSet& images);
  /// The same without waiting for its end, where the device goes on by itself: its report is
  /// still to be taken. `images` may go when it returns. Errors: as step(), perhaps of a step
  /// before.
  Result<void> start(const ImageSet& images);
  /// Steps that were started and whose reports were not taken.
  std::size_t reports_due() const { return static_cast<std::size_t>(due_) + reports_.size(); }
  /// Takes the report of the oldest of them; nullopt: that step is not done. Errors: as step().
  Result<std::optional<StepReport>> report_if_done();
  /// Takes it and waits for it; there is one due. Errors: as step().
  Result<StepReport> report();
  /// One micro-batch, on as many images as the recipe's batch; the report of the step if this
  /// was its last, and then none is due of a step before. Errors: as step().
  Result<std::optional<StepReport>> micro_step(const ImageSet& images);
  /// Every image counts once, whatever their number; with the averages of the parameters, where
  /// the recipe has these. Errors: as step().
  Result<Evaluation> evaluate(const ImageSet& images);

  /// Writes all that what follows depends on, in the midst of a step too; `position` is the
  /// caller's. Waits for what was started. Errors: as write_checkpoint(); a dead run
  /// (workload), of which nothing is saved; as step().
  Result<void> save(const std::filesystem::path& path, const TrainPosition& position);
  /// Where a checkpoint ends this training goes on, to the same bits on the same machine.
  struct Resumed {
    TrainPosition position;
    std::vector<std::string> warnings;  ///< why they may be others
  };
  /// Errors: as read_checkpoint().
  Result<Resumed> restore(const std::filesystem::path& path);

 private:
  Trainer(const TrainRecipe& recipe, Backend& backend) : recipe_(recipe), backend_(&backend) {}
  Result<void> initialise();
  Result<void> begin_averages();
  /// A run that was started, of which nothing is known yet.
  struct Run {
    std::int64_t attempt = 0;
    bool begins_step = false;
    bool ends_step = false;
  };
  Result<void> start_part(const ImageSet& images, std::int64_t first);
  Result<void> start_run(int plan, bool begins_step, bool ends_step);
  Result<void> take_run();
  Result<void> settle();
  Result<void> evaluate_part(const ImageSet& images, std::int64_t first, Evaluation& sum);
  Result<void> check(const ImageSet& images) const;
  void bind(int plan, const ImageSet& images, std::int64_t first, std::int64_t valid);
  void bind_key(int plan, std::int64_t first_sample);
  StepReport report_of(const Session::Numbers& results, std::int64_t attempt);
  std::vector<std::string> amax_warnings(const Session::Numbers& results) const;

  static constexpr int kTrain = 0;
  static constexpr int kEvaluate = 1;
  static constexpr int kUpdate = 2;

  TrainRecipe recipe_;
  Backend* backend_;
  States states_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> gradients_;  ///< names, as `first_bad` counts them
  std::int64_t parameters_ = 0;         ///< elements
  std::int64_t learning_ = 0;           ///< of these, how many have a gradient
  NumericalWatch watch_;
  TrainProgress progress_;          ///< its watch and position are set when it is saved
  std::deque<Run> runs_;            ///< as the session's that were started
  int due_ = 0;                     ///< reports of these
  std::deque<StepReport> reports_;  ///< that nobody took
};

}  // namespace halfwatt

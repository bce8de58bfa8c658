#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/image_set.h"
#include "engine/exec/session.h"
#include "engine/models/vit.h"
#include "engine/passes/precision.h"
#include "engine/passes/update.h"
#include "engine/train/numerical_watch.h"

namespace halfwatt {

/// All that a training follows from, but for the data.
struct TrainRecipe {
  VitConfig model;
  Precision precision;
  std::vector<PrecisionOverride> overrides;
  Optimizer optimizer;
  std::int64_t batch = 32;  ///< images at once
  int micro_batches = 1;    ///< of that many, which make a step
  bool recompute = false;   ///< of blocks, for less memory
  double smoothing = 0;     ///< of labels
  std::uint64_t seed = 1;
};

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

struct Evaluation {
  std::int64_t images = 0;
  std::int64_t right = 0;
  double loss = 0;  ///< mean
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
  std::int64_t parameters() const { return parameters_; }
  States& states() { return states_; }

  /// One step on step_size() images. Errors: images or labels that are not what the model
  /// takes, and then nothing was done; the device is lost.
  Result<StepReport> step(const ImageSet& images);
  /// Every image counts once, whatever their number; with the averages of the parameters, where
  /// the recipe has these. Errors: as step().
  Result<Evaluation> evaluate(const ImageSet& images);

 private:
  Trainer(const TrainRecipe& recipe, Backend& backend) : recipe_(recipe), backend_(&backend) {}
  Result<void> initialise();
  Result<void> check(const ImageSet& images) const;
  void bind(int plan, const ImageSet& images, std::int64_t first, std::int64_t valid);
  void bind_key(int plan, std::int64_t first_sample);
  StepReport report(double loss);
  std::vector<std::string> amax_warnings(int plan) const;
  double number(int plan, std::string_view result) const;
  int update_plan() const { return recipe_.micro_batches > 1 ? kUpdate : kTrain; }

  static constexpr int kTrain = 0;
  static constexpr int kEvaluate = 1;
  static constexpr int kUpdate = 2;

  TrainRecipe recipe_;
  Backend* backend_;
  States states_;
  std::unique_ptr<Session> session_;
  NumericalWatch watch_;
  std::vector<std::string> gradients_;  ///< names, as `first_bad` counts them
  std::int64_t parameters_ = 0;
  std::int64_t attempt_ = 0;
};

}  // namespace halfwatt

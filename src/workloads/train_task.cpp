#include "workloads/train_task.h"

#include <utility>

#include "engine/train/trainer.h"
#include "workloads/random_data.h"

namespace halfwatt {
namespace {

class TrainTask final : public EngineTask {
 public:
  TrainTask(ModelChoice choice, EngineDevice device)
      : choice_(std::move(choice)),
        device_(std::move(device)),
        info_(info_of(choice_, "train")) {}

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return model_knobs(); }
  double items(const Setting& setting) const override {
    return static_cast<double>(batch_of(setting));
  }

  Result<Prediction> predict(const Setting& setting) const override {
    const auto recipe = recipe_of(setting);
    if (!recipe) {
      return recipe.error();
    }
    const auto plans = training_plans(*recipe, device_.backend->target());
    return plans ? Result<Prediction>(prediction(*plans, device_)) : plans.error();
  }

  Result<StepLoop::Step> prepare(const Setting& setting) override {
    const auto recipe = recipe_of(setting);
    if (!recipe) {
      return recipe.error();
    }
    auto opened = Trainer::open(*recipe, *device_.backend);
    if (!opened) {
      return opened.error();
    }
    // Both shared, as a std::function is copied: with whoever holds the step.
    const std::shared_ptr<Trainer> trainer = std::move(*opened);
    const auto images = std::make_shared<const ImageSet>(
        random_images(choice_.model, trainer->step_size(), choice_.seed));
    return StepLoop::Step([trainer, images]() -> Result<NumericalState> {
      const auto done = trainer->step(*images);
      return done ? Result<NumericalState>(done->state) : done.error();
    });
  }

 private:
  Result<TrainRecipe> recipe_of(const Setting& setting) const {
    auto precision = precision_of(setting);
    if (!precision) {
      return precision.error();
    }
    TrainRecipe recipe;
    recipe.model = choice_.model;
    recipe.precision = std::move(*precision);
    recipe.batch = batch_of(setting);
    recipe.seed = choice_.seed;
    return recipe;
  }

  ModelChoice choice_;
  EngineDevice device_;
  WorkloadInfo info_;
};

}  // namespace

std::unique_ptr<EngineTask> train_task(ModelChoice choice, EngineDevice device) {
  return std::make_unique<TrainTask>(std::move(choice), std::move(device));
}

}  // namespace halfwatt

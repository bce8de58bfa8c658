// A training that begins with given weights, and of which only some learn.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/formats/folder.h"
#include "engine/models/weights.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

std::vector<std::byte> bytes(Trainer& trainer, const std::string& state) {
  const Tensor tensor = trainer.states().save(state);
  return {tensor.view().bytes().begin(), tensor.view().bytes().end()};
}

TEST(FineTuning, leaves_frozen_parameters_as_they_are_and_trains_the_others) {
  const ImageSet images = digits();
  for (const std::string_view mode : {"fp32", "amp-bf16", "amp-fp16", "bf16", "O2"}) {
    TrainRecipe recipe = small_recipe(mode);
    recipe.freeze = {"patch_embed", "blocks.0", "pos_embed", "cls_token"};
    recipe.optimizer.average = 0.9;
    recipe.optimizer.rate = 1e-2;  // more than half an ulp of 1 in bf16
    SmallTraining training(recipe);
    const SmallTraining fresh(recipe);
    training.steps(images, 0, 5);
    for (const StateSpec& parameter : vit_parameters(recipe.model)) {
      const bool same =
          bytes(*training.trainer, parameter.name) == bytes(*fresh.trainer, parameter.name);
      EXPECT_EQ(same, any_names(recipe.freeze, parameter.name)) << mode << parameter.name;
    }
    EXPECT_FALSE(training.trainer->states().has("blocks.0.norm1.weight.exp_avg"));
    EXPECT_FALSE(training.trainer->states().has("blocks.0.norm1.weight.ema"));
    EXPECT_TRUE(training.trainer->states().has("blocks.1.norm1.weight.exp_avg"));
    EXPECT_TRUE(training.trainer->evaluate(some(images, 0, 20)));
  }
}

TEST(FineTuning, with_a_head_alone_is_live_though_most_parameters_stand_still) {
  TrainRecipe recipe = small_recipe("fp32");
  recipe.freeze = {"patch_embed", "blocks", "pos_embed", "cls_token", "norm"};
  recipe.optimizer.rate = 1e-2;
  SmallTraining training(recipe);
  const ImageSet images = some(digits(), 0, 16);
  training.steps(images, 0, 40);
  EXPECT_EQ(training.states.back(), NumericalState::live);
  EXPECT_LT(training.losses.back(), training.losses.front());
}

// One step of AdamW without decay goes as far as the rate, whatever the gradient.
TEST(FineTuning, goes_less_far_in_lower_layers_by_the_factor_that_is_asked_for) {
  TrainRecipe recipe = small_recipe("fp32");
  recipe.layer_decay = 0.5;
  recipe.optimizer.decay = 0;
  recipe.optimizer.eps = 1e-30;
  recipe.optimizer.rate = 1e-2;
  SmallTraining training(recipe);
  const SmallTraining fresh(recipe);
  training.steps(digits(), 0, 1);
  const auto moved = [&](const std::string& name) {
    const Tensor before = fresh.trainer->states().save(name);
    const Tensor after = training.trainer->states().save(name);
    float most = 0;
    for (std::size_t at = 0; at < before.as<float>().size(); ++at) {
      most = std::max(most, std::abs(after.as<float>()[at] - before.as<float>()[at]));
    }
    return most;
  };
  EXPECT_NEAR(moved("head.weight"), 1e-2, 1e-6);
  EXPECT_NEAR(moved("norm.bias"), 0.5e-2, 1e-6);
  EXPECT_NEAR(moved("blocks.1.mlp.fc1.weight"), 0.5e-2, 1e-6);
  EXPECT_NEAR(moved("blocks.0.mlp.fc1.weight"), 0.25e-2, 1e-6);
  EXPECT_NEAR(moved("patch_embed.proj.weight"), 0.125e-2, 1e-6);
}

// What a training evaluates with is what it hands over.
TEST(FineTuning, saves_the_averages_as_a_model_that_scores_what_the_training_said) {
  const Folder folder;
  TrainRecipe recipe = small_recipe("fp32");
  recipe.optimizer.average = 0.9;
  SmallTraining averaging(recipe);
  averaging.steps(digits(), 0, 3);
  ASSERT_TRUE(
      save_weights(folder.path("w"), averaging.trainer->states(), SavedWeights::averages));
  recipe.optimizer.average = 0;
  SmallTraining plain(recipe);
  ASSERT_TRUE(plain.trainer->begin_with(folder.path("w"), {}));
  const auto said = averaging.trainer->evaluate(digits());
  const auto found = plain.trainer->evaluate(digits());
  ASSERT_TRUE(said && found);
  EXPECT_EQ(said->loss, found->loss);
  ASSERT_TRUE(save_weights(folder.path("w"), averaging.trainer->states()));
  ASSERT_TRUE(plain.trainer->begin_with(folder.path("w"), {}));
  EXPECT_NE(plain.trainer->evaluate(digits())->loss, said->loss)
      << "these are not the averages";
}

TEST(FineTuning, begins_with_the_weights_of_another_image_size_and_head_averages_too) {
  const Folder folder;
  TrainRecipe recipe = small_recipe("amp-bf16");
  SmallTraining learned(recipe);
  learned.steps(digits(), 0, 3);
  ASSERT_TRUE(save_weights(folder.path("w"), learned.trainer->states()));
  TrainRecipe larger = recipe;
  larger.model = *vit_named("vit_micro_patch2_12");
  larger.model.channels = 1;
  larger.model.classes = 3;
  larger.optimizer.average = 0.9;
  SmallTraining tuned(larger);
  EXPECT_FALSE(tuned.trainer->begin_with(folder.path("w"), {.reset_head = true}));
  const auto report =
      tuned.trainer->begin_with(folder.path("w"), {.reset_head = true, .resize = true});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->changes.size(), 3U);
  const std::string weight = "blocks.1.mlp.fc1.weight";
  EXPECT_EQ(bytes(*tuned.trainer, weight), bytes(*learned.trainer, weight));
  EXPECT_EQ(bytes(*tuned.trainer, weight + ".ema"), bytes(*learned.trainer, weight));
  EXPECT_EQ(tuned.trainer->states().save("pos_embed").shape(), (Shape{1, 37, 32}));
}

TEST(FineTuning, refuses_to_freeze_what_is_not_there) {
  TrainRecipe recipe = small_recipe("fp32");
  recipe.freeze = {"blocks.9"};
  const auto backend = std::move(*open_cpu());
  const auto refused = Trainer::open(recipe, *backend);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "--freeze blocks.9: no parameter or layer is called so; the first parameter is "
            "cls_token");
}

}  // namespace
}  // namespace halfwatt

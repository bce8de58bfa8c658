// Plans for devices that this machine has not, run on the null backend. Its memory may not be
// touched, so that these tests also show that a session goes through upload and download only.

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "base/failure.h"
#include "engine/backend/null/null_backend.h"
#include "engine/exec/session.h"
#include "engine/models/initial.h"
#include "engine/models/vit.h"
#include "engine/passes/pipeline.h"
#include "engine/plan/known_targets.h"
#include "engine/train/trainer.h"

namespace halfwatt {
namespace {

Target named(const std::string& name) { return *target_named(name); }

Compilation training(std::string_view mode, std::vector<Target> targets) {
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.optimizer = Optimizer{};
  asked.targets = std::move(targets);
  return asked;
}

TEST(NullBackend, RunsEveryStepOfALargeModelOnACardThatIsNotThere) {
  const auto card = open_null(named("h200"));
  const Compilation asked = training("amp-fp16", {card->target()});
  const VitConfig model = *vit_named("vit_base_patch16_224");
  const auto compiled = compile(vit(model, 160, ModelMode::train), asked);
  ASSERT_TRUE(compiled) << compiled.error().message;
  std::vector<Plan> plans;
  plans.push_back(*lower(compiled->graph, asked.targets));
  const std::size_t steps = plans[0].devices[0].steps.size();
  const std::size_t planned = footprint(plans[0], 0).total();
  States states;
  const auto session = Session::open(std::move(plans), {card.get()}, states);
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(card->allocated(), planned);
  std::size_t ran = 0;
  ASSERT_TRUE((*session)->run(0, [&](int, int) { ++ran; }));
  EXPECT_EQ(ran, steps);
}

TEST(NullBackend, RunsAModelThatIsSplitOverTwoCardsWithoutWaitingForEver) {
  const auto big = open_null(named("h200"));
  const auto small = open_null(named("t4"));
  Compilation asked = training("amp-fp16", {big->target(), small->target()});
  asked.place = *placement_rules("blocks.1.*=t4,blocks.3.*=t4");
  const auto compiled =
      compile(vit(*vit_named("vit_tiny_patch16_224"), 8, ModelMode::train), asked);
  ASSERT_TRUE(compiled) << compiled.error().message;
  std::vector<Plan> plans;
  plans.push_back(*lower(compiled->graph, asked.targets));
  const std::vector<DevicePlan> devices = plans[0].devices;
  ASSERT_FALSE(devices[1].steps.empty());
  States states;
  const auto session = Session::open(std::move(plans), {big.get(), small.get()}, states);
  ASSERT_TRUE(session) << session.error().message;
  std::mutex mutex;
  std::map<int, std::vector<int>> ran;
  ASSERT_TRUE((*session)->run(0, [&](int device, int step) {
    const std::lock_guard lock(mutex);
    ran[device].push_back(step);
  }));
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(ran[device].size(), devices[static_cast<std::size_t>(device)].steps.size());
    EXPECT_TRUE(std::is_sorted(ran[device].begin(), ran[device].end()));
  }
}

TEST(NullBackend, RefusesMoreThanTheCardHas) {
  Target target = named("t4");
  target.memory = Bytes(1000);
  const auto card = open_null(target);
  const Buffer held = card->allocate(900);
  EXPECT_THROW(static_cast<void>(card->allocate(101)), Failure);
  EXPECT_EQ(card->allocated(), 900U);
}

TEST(NullBackend, GivesATrainingNumbersThatNobodyTakesForReal) {
  const auto card = open_null(named("rtx4090"));
  TrainRecipe recipe;
  recipe.model = *vit_named("vit_micro_patch4_8");
  recipe.precision = *precision_named("amp-bf16");
  recipe.batch = 4;
  const auto trainer = Trainer::open(recipe, *card);
  ASSERT_TRUE(trainer) << trainer.error().message;
  ImageSet images;
  images.classes = 2;
  images.labels = {0, 1, 0, 1};
  images.images = Tensor(TensorType{
      DType::f32, Shape{4, recipe.model.channels, recipe.model.image, recipe.model.image}});
  const auto report = (*trainer)->step(images);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->state, NumericalState::dead);
}

}  // namespace
}  // namespace halfwatt

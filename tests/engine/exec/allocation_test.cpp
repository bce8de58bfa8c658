// What a session allocates, at the backend's border: what its plans say, and nothing later.

#include <gtest/gtest.h>

#include "base/failure.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/exec/session.h"
#include "engine/models/initial.h"
#include "engine/train/trainer.h"
#include "support/forwarding_backend.h"

namespace halfwatt {
namespace {

/// Another backend, which can be told to hand out no more memory.
class StingyBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void refuse() { refuses_ = true; }

  Buffer allocate(std::size_t bytes) override {
    if (refuses_) {
      throw Failure({ErrorKind::device, "nothing more is handed out"});
    }
    return ForwardingBackend::allocate(bytes);
  }

 private:
  bool refuses_ = false;
};

StingyBackend cpu() { return StingyBackend(*open_cpu()); }

TrainRecipe micro_recipe(std::string_view precision, int micro_batches) {
  TrainRecipe recipe;
  recipe.model = *vit_named("vit_micro_patch4_16");
  recipe.model.classes = 10;
  recipe.model.drop_path = 0.1;
  recipe.precision = *precision_named(precision);
  recipe.batch = 4;
  recipe.micro_batches = micro_batches;
  return recipe;
}

ImageSet images(const TrainRecipe& recipe, std::int64_t count) {
  const VitConfig& model = recipe.model;
  ImageSet set{
      Tensor({DType::f32, Shape{count, model.channels, model.image, model.image}}), {}, 10};
  std::fill(set.images.as<float>().begin(), set.images.as<float>().end(), 0.5F);
  set.labels.assign(static_cast<std::size_t>(count), 3);
  return set;
}

std::size_t of_session(const std::vector<Plan>& plans) {
  std::vector<const Plan*> all;
  for (const Plan& plan : plans) {
    all.push_back(&plan);
  }
  return shared_footprint(all, 0).total();
}

TEST(Allocation, of_a_training_is_to_the_byte_what_its_plans_say) {
  for (const Precision& precision : precisions()) {
    for (const int micro_batches : {1, 2}) {
      StingyBackend backend = cpu();
      const TrainRecipe recipe = micro_recipe(precision.name, micro_batches);
      const auto plans = training_plans(recipe, backend.target());
      ASSERT_TRUE(plans) << plans.error().message;
      const auto trainer = Trainer::open(recipe, backend);
      ASSERT_TRUE(trainer) << trainer.error().message;
      EXPECT_EQ(backend.allocated(), of_session(*plans))
          << precision.name << " " << micro_batches;
    }
  }
}

TEST(Allocation, ends_where_a_session_is_open) {
  for (const Precision& precision : precisions()) {
    StingyBackend backend = cpu();
    const TrainRecipe recipe = micro_recipe(precision.name, 2);
    const auto trainer = Trainer::open(recipe, backend);
    ASSERT_TRUE(trainer) << trainer.error().message;
    backend.refuse();
    const std::size_t before = backend.allocated();
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE((*trainer)->step(images(recipe, 8))) << precision.name;
    }
    ASSERT_TRUE((*trainer)->evaluate(images(recipe, 6))) << precision.name;
    EXPECT_EQ(backend.allocated(), before);
  }
}

TEST(Allocation, of_one_plan_is_what_the_plan_says) {
  const StingyBackend other = cpu();
  StingyBackend backend = cpu();
  const TrainRecipe recipe = micro_recipe("fp32", 1);
  const auto plan =
      lower(*with_precision(vit(recipe.model, 4, ModelMode::infer), recipe.precision, {}),
            {&backend.target(), 1});
  ASSERT_TRUE(plan);
  States states;
  const auto session = Session::open({*plan}, {&backend}, states);
  ASSERT_TRUE(session);
  EXPECT_EQ(backend.allocated(), footprint(*plan, 0).total());
  EXPECT_EQ(other.allocated(), 0U);
}

TEST(Session, tells_every_step_of_a_run_in_order) {
  StingyBackend backend = cpu();
  const TrainRecipe recipe = micro_recipe("fp32", 1);
  const auto plan =
      lower(*with_precision(vit(recipe.model, 4, ModelMode::infer), recipe.precision, {}),
            {&backend.target(), 1});
  States states;
  const auto session = Session::open({*plan}, {&backend}, states);
  ASSERT_TRUE(session);
  std::vector<int> told;
  const auto ran = (*session)->run(0, [&](int device, int step) {
    EXPECT_EQ(device, 0);
    told.push_back(step);
  });
  ASSERT_TRUE(ran);
  ASSERT_EQ(told.size(), plan->devices[0].steps.size());
  for (std::size_t at = 0; at < told.size(); ++at) {
    EXPECT_EQ(told[at], static_cast<int>(at));
  }
}

}  // namespace
}  // namespace halfwatt

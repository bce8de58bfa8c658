// What a trainer says of its numbers: runs that compute nothing, and those that can live.

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/tensor/convert.h"
#include "engine/train/trainer.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kBatch = 16;

TrainRecipe recipe(std::string_view mode) {
  TrainRecipe all;
  all.model = *vit_named("vit_micro_patch4_8");
  all.model.channels = 1;
  all.model.classes = 4;
  all.precision = *precision_named(mode);
  all.batch = kBatch;
  return all;
}

/// Images that tell their class: bright in its quarter.
ImageSet images(std::int64_t count, float brightness = 1) {
  ImageSet set;
  set.classes = 4;
  Rng rng(5);
  std::vector<float> pixels;
  for (std::int64_t image = 0; image < count; ++image) {
    set.labels.push_back(image % 4);
    for (std::int64_t at = 0; at < 64; ++at) {
      const std::int64_t quarter = at / 32 * 2 + at % 8 / 4;
      const double light = quarter == image % 4 ? 1 : 0;
      pixels.push_back(brightness * static_cast<float>(light + 0.3 * rng.normal()));
    }
  }
  set.images = Tensor::of<float>(DType::f32, Shape{count, 1, 8, 8}, pixels);
  return set;
}

struct Training {
  explicit Training(const TrainRecipe& recipe) {
    backend = std::move(*open_cpu());
    auto opened = Trainer::open(recipe, *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    trainer = std::move(*opened);
  }
  StepReport step(const ImageSet& set) {
    auto report = trainer->step(set);
    EXPECT_TRUE(report);
    return *report;
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Trainer> trainer;
};

TEST(PureHalf, is_dead_at_the_first_steps_with_the_usual_eps) {
  TrainRecipe how = recipe("O3");
  how.optimizer.eps = 1e-8;
  Training training(how);
  StepReport report = training.step(images(kBatch));
  if (report.state != NumericalState::dead) {
    report = training.step(images(kBatch));
  }
  EXPECT_EQ(report.state, NumericalState::dead);
  EXPECT_LE(report.attempt, 2);
  EXPECT_NE(report.reason.find("parameters are not finite, the first in"), std::string::npos)
      << report.reason;
  EXPECT_EQ(training.step(images(kBatch)).state, NumericalState::dead);
}

TEST(PureHalf, lives_and_learns_with_an_eps_that_half_can_hold) {
  TrainRecipe how = recipe("O3");
  how.optimizer.eps = 1e-4;
  Training training(how);
  const double first = training.step(images(kBatch)).loss;
  StepReport last;
  for (int step = 0; step < 50; ++step) {
    last = training.step(images(kBatch));
    ASSERT_EQ(last.state, NumericalState::live) << step << ": " << last.reason;
  }
  EXPECT_LT(last.loss, first / 2);
}

TEST(LossScaleFloor, ends_a_run_that_overflows_there_and_names_the_tensor) {
  TrainRecipe how = recipe("amp-fp16");
  how.optimizer.floor_scale = 8192;
  Training training(how);
  const ImageSet blinding = images(kBatch, 1e8F);
  StepReport report;
  for (int step = 1; step <= 3; ++step) {
    report = training.step(blinding);
    EXPECT_TRUE(report.skipped);
    EXPECT_EQ(report.scale, 65536 / std::pow(2, step));
  }
  EXPECT_EQ(report.state, NumericalState::dead);
  EXPECT_NE(
      report.reason.find("gradients overflow at the least loss scale, 8192, the first in "),
      std::string::npos)
      << report.reason;
  const std::string named = report.reason.substr(report.reason.find("first in ") + 9);
  EXPECT_TRUE(training.trainer->states().has(named.substr(0, named.find(';')))) << named;
}

TEST(LossScaleFloor, does_not_end_a_run_that_overflows_above_it) {
  Training training(recipe("amp-fp16"));
  const StepReport skipped = training.step(images(kBatch, 1e8F));
  EXPECT_TRUE(skipped.skipped);
  EXPECT_NE(skipped.state, NumericalState::dead) << skipped.reason;
  const StepReport applied = training.step(images(kBatch));
  EXPECT_FALSE(applied.skipped);
  EXPECT_EQ(applied.state, NumericalState::live) << applied.reason;
}

// What is evaluated with averages is what a model evaluates that was given them as parameters.
TEST(Average, is_what_an_evaluation_reads) {
  for (const char* mode : {"fp32", "amp-bf16", "bf16"}) {
    TrainRecipe how = recipe(mode);
    how.optimizer.average = 0.5;
    Training averaging(how);
    for (int step = 0; step < 3; ++step) {
      averaging.step(images(kBatch));
    }
    how.optimizer.average = 0;
    Training plain(how);
    States& states = averaging.trainer->states();
    for (const std::string& name : states.names()) {
      if (states.spec(name).role == StateRole::average) {
        ASSERT_TRUE(
            plain.trainer->states().load(states.spec(name).of, states.save(name).view()));
      }
    }
    const auto one = averaging.trainer->evaluate(images(kBatch));
    const auto other = plain.trainer->evaluate(images(kBatch));
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->loss, other->loss) << mode;
    EXPECT_NE(one->loss, 0) << mode;
  }
}

TEST(Average, begins_as_the_parameters_and_follows_them) {
  TrainRecipe how = recipe("fp32");
  how.optimizer.average = 0.9;
  Training training(how);
  States& states = training.trainer->states();
  const auto average = states.save("head.weight.ema");
  const auto before = states.save("head.weight");
  EXPECT_TRUE(std::equal(average.as<float>().begin(), average.as<float>().end(),
                         before.as<float>().begin()));
  training.step(images(kBatch));
  const auto after = states.save("head.weight");
  const auto moved = states.save("head.weight.ema");
  for (std::size_t at = 0; at < 8; ++at) {
    const float wanted = 0.9F * before.as<float>()[at] + 0.1F * after.as<float>()[at];
    EXPECT_NEAR(moved.as<float>()[at], wanted, 1e-7);
  }
}

// Weights some times as large as at the start of a training, and steps that are mostly below
// half a unit of them in bf16.
struct SlowBf16 : Training {
  explicit SlowBf16(bool stochastic, int micro_batches = 1)
      : Training(recipe(stochastic, micro_batches)) {
    States& states = trainer->states();
    for (const StateSpec& state : vit_parameters(recipe(stochastic, 1).model)) {
      Tensor values(TensorType{DType::f32, state.type.shape});
      convert(states.save(state.name).view(), values.view());
      for (float& value : values.as<float>()) {
        value = state.type.shape.rank() > 1 ? 8 * value : value;
      }
      EXPECT_TRUE(states.load(state.name, values.view()));
    }
  }

  static TrainRecipe recipe(bool stochastic, int micro_batches) {
    TrainRecipe how = halfwatt::recipe(stochastic ? "bf16-sr" : "bf16");
    how.optimizer.rate = 1e-4;
    how.optimizer.decay = 0;
    how.batch = kBatch / micro_batches;
    how.micro_batches = micro_batches;
    return how;
  }

  StepReport steps(int count) {
    StepReport last;
    for (int step = 0; step < count; ++step) {
      last = step_on_the_same();
    }
    return last;
  }
  StepReport step_on_the_same() { return step(images(kBatch)); }
};

TEST(Bf16, learns_with_stochastic_rounding_where_rounding_to_nearest_gets_stuck) {
  SlowBf16 nearest(false);
  SlowBf16 stochastic(true);
  EXPECT_EQ(nearest.steps(1).loss, stochastic.steps(1).loss);
  EXPECT_LT(stochastic.steps(150).loss, nearest.steps(150).loss / 4);
}

TEST(Bf16, rounds_stochastically_after_micro_batches_too) {
  SlowBf16 one(true, 4);
  SlowBf16 other(true, 4);
  EXPECT_EQ(one.steps(5).loss, other.steps(5).loss);
}

}  // namespace
}  // namespace halfwatt

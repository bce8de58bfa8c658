// Trainings on the GPU beside the same trainings on the CPU.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cuda/checks.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

class Training : public OnGpu {};

std::vector<StepReport> steps(Backend& backend,
                              const TrainRecipe& how,
                              int count,
                              const ImageSet& images = digits()) {
  auto trainer = Trainer::open(how, backend);
  EXPECT_TRUE(trainer) << trainer.error().message;
  const std::int64_t size = (*trainer)->step_size();
  std::vector<StepReport> all;
  for (int step = 0; step < count; ++step) {
    const auto report = (*trainer)->step(some(images, step * size, size));
    EXPECT_TRUE(report) << report.error().message;
    all.push_back(*report);
  }
  return all;
}

// What both round, they may round in another order: a step differs by a few units of the format
// of what it computes in.
TEST_F(Training, has_the_losses_norms_and_scales_of_the_cpu_in_every_mode) {
  const struct {
    std::string_view mode;
    double unit;
  } modes[] = {{"fp32", 1e-5},     {"tf32", 4e-3},    {"amp-fp16", 4e-3},
               {"amp-bf16", 3e-2}, {"fp16-sr", 2e-2}, {"O1", 4e-3},
               {"O2", 4e-3},       {"bf16", 6e-2},    {"bf16-sr", 6e-2}};
  for (const auto& [mode, unit] : modes) {
    SCOPED_TRACE(mode);
    const auto gpu = opened_gpu();
    const auto cpu = std::move(*open_cpu());
    const auto got = steps(*gpu, small_recipe(mode), 5);
    const auto wanted = steps(*cpu, small_recipe(mode), 5);
    for (std::size_t at = 0; at < got.size(); ++at) {
      EXPECT_NEAR(got[at].loss, wanted[at].loss, unit * wanted[at].loss) << at;
      EXPECT_NEAR(got[at].gradient_norm, wanted[at].gradient_norm,
                  8 * unit * wanted[at].gradient_norm)
          << at;
      EXPECT_EQ(got[at].scale, wanted[at].scale) << at;
      EXPECT_EQ(got[at].skipped, wanted[at].skipped) << at;
      EXPECT_EQ(got[at].state, wanted[at].state) << at;
    }
  }
}

TEST_F(Training, sums_micro_batches_as_the_cpu_does) {
  TrainRecipe how = small_recipe("fp32");
  how.micro_batches = 3;
  const auto got = steps(*opened_gpu(), how, 3);
  const auto wanted = steps(**open_cpu(), how, 3);
  for (std::size_t at = 0; at < got.size(); ++at) {
    EXPECT_NEAR(got[at].loss, wanted[at].loss, 1e-5 * wanted[at].loss);
  }
}

TEST_F(Training, holds_as_many_bytes_as_its_plans_say) {
  for (const int micro_batches : {1, 3}) {
    const auto gpu = opened_gpu();
    TrainRecipe how = small_recipe("amp-fp16");
    how.micro_batches = micro_batches;
    const auto plans = training_plans(how, gpu->target());
    ASSERT_TRUE(plans) << plans.error().message;
    std::vector<const Plan*> all;
    for (const Plan& plan : *plans) {
      all.push_back(&plan);
    }
    const auto trainer = std::move(*Trainer::open(how, *gpu));
    EXPECT_EQ(gpu->allocated(), shared_footprint(all, 0).total());
    ASSERT_TRUE(trainer->step(some(digits(), 0, trainer->step_size())));
    EXPECT_EQ(gpu->allocated(), shared_footprint(all, 0).total()) << "after a step";
  }
}

TEST_F(Training, has_the_same_bits_when_it_runs_again) {
  for (const std::string_view mode : {"fp32", "amp-fp16", "bf16", "fp8-delayed"}) {
    SCOPED_TRACE(mode);
    const auto one_gpu = opened_gpu();
    const auto other_gpu = opened_gpu();
    const auto one = std::move(*Trainer::open(small_recipe(mode), *one_gpu));
    const auto other = std::move(*Trainer::open(small_recipe(mode), *other_gpu));
    const ImageSet images = digits();
    for (int step = 0; step < 10; ++step) {
      const auto first = one->step(some(images, step * 16, 16));
      const auto second = other->step(some(images, step * 16, 16));
      ASSERT_TRUE(first && second);
      EXPECT_EQ(first->loss, second->loss) << step;
      EXPECT_EQ(first->gradient_norm, second->gradient_norm) << step;
    }
    EXPECT_EQ(differing(*one, *other), "");
  }
}

TEST_F(Training, has_the_same_bits_of_bytes_as_of_their_numbers) {
  const Normalisation by = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const SmallPictures pictures(64, by);
  for (const std::string_view mode : {"fp32", "amp-bf16", "fp16", "fp8-delayed"}) {
    TrainRecipe how = small_recipe(mode);
    how.model.channels = 3;
    const auto wanted = steps(*opened_gpu(), how, 4, pictures.numbers);
    how.normalisation = by;
    const auto got = steps(*opened_gpu(), how, 4, pictures.bytes);
    for (std::size_t at = 0; at < got.size(); ++at) {
      EXPECT_EQ(got[at].loss, wanted[at].loss) << mode << ' ' << at;
      EXPECT_EQ(got[at].gradient_norm, wanted[at].gradient_norm) << mode << ' ' << at;
    }
  }
}

TEST_F(Training, refreshes_the_copies_that_products_read) {
  for (const char* const mode : {"amp-fp16", "amp-bf16", "fp8", "fp8-delayed", "O1", "O2"}) {
    EXPECT_EQ(error_of_copies(mode), 0) << mode;
  }
}

TEST_F(Training, learns_a_batch_by_heart) {
  const auto gpu = opened_gpu();
  for (const std::string_view mode :
       {"fp32", "tf32", "amp-fp16", "amp-bf16", "fp8", "fp8-delayed"}) {
    TrainRecipe how = small_recipe(mode);
    how.optimizer.rate = 3e-3;
    const auto trainer = std::move(*Trainer::open(how, *gpu));
    const ImageSet batch = some(digits(), 0, 16);
    StepReport last;
    for (int step = 0; step < 120; ++step) {
      last = *trainer->step(batch);
    }
    EXPECT_LT(last.loss, 0.1) << mode;
    EXPECT_EQ(last.state, NumericalState::live) << mode;
    EXPECT_EQ(trainer->evaluate(batch)->right, 16) << mode;
  }
}

// Products of fp8 add up what the tensor cores keep of it; scales follow from magnitudes.
TEST_F(Training, has_the_losses_and_scales_of_the_cpu_in_fp8) {
  for (const std::string_view mode : {"fp8", "fp8-delayed"}) {
    SCOPED_TRACE(mode);
    const auto got = steps(*opened_gpu(), small_recipe(mode), 5);
    const auto wanted = steps(**open_cpu(), small_recipe(mode), 5);
    for (std::size_t at = 0; at < got.size(); ++at) {
      EXPECT_NEAR(got[at].loss, wanted[at].loss, 0.06 * wanted[at].loss) << at;
      EXPECT_NEAR(got[at].gradient_norm, wanted[at].gradient_norm,
                  0.25 * wanted[at].gradient_norm)
          << at;
      EXPECT_EQ(got[at].state, wanted[at].state) << at;
    }
  }
}

}  // namespace
}  // namespace halfwatt

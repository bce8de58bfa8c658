// What a training on the GPU makes its host wait for.

#include <gtest/gtest.h>

#include "engine/backend/cuda/driver_calls.h"
#include "engine/backend/cuda/gpu.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

class Waits : public OnGpu {};

std::string list(const std::map<std::string, int>& calls) {
  std::string all;
  for (const auto& [name, count] : calls) {
    all += name + " " + std::to_string(count) + "; ";
  }
  return all;
}

TEST_F(Waits, are_no_calls_of_the_driver_between_the_steps_of_a_training) {
  for (const int micro_batches : {1, 3}) {
    const auto gpu = opened_gpu();
    TrainRecipe how = small_recipe("amp-fp16");
    how.micro_batches = micro_batches;
    const auto trainer = std::move(*Trainer::open(how, *gpu));
    DriverCalls calls;
    if (!calls.why_not().empty()) {
      GTEST_SKIP() << calls.why_not();
    }
    std::vector<StepReport> reports;
    const std::int64_t size = trainer->step_size();
    const ImageSet images = digits();
    for (int step = 0; step < 110; ++step) {
      if (step == 10) {
        EXPECT_EQ(trainer->reports_due(), 2U);
        calls.taken();
      }
      ASSERT_TRUE(trainer->start(some(images, step % 20 * size, size)));
      while (trainer->reports_due() > 2) {
        reports.push_back(*trainer->report());
      }
    }
    const auto waits = calls.taken();
    EXPECT_TRUE(waits.empty()) << list(waits);
    // That it counts at all.
    gpu->upload(gpu->allocate(16).data(), std::vector<std::byte>(16));
    EXPECT_GT(calls.taken().size(), 1U);
    while (trainer->reports_due() > 0) {
      reports.push_back(*trainer->report());
    }
    ASSERT_EQ(reports.size(), 110U);
    EXPECT_LT(reports.back().loss, reports.front().loss);
  }
}

// Values, scales and skips do not follow from when the host looks.
TEST_F(Waits, change_no_bit_of_a_training) {
  for (const int micro_batches : {1, 3}) {
    TrainRecipe how = small_recipe("amp-fp16");
    how.micro_batches = micro_batches;
    const auto gpu = opened_gpu();
    const auto waiting = std::move(*Trainer::open(how, *gpu));
    const auto ahead = std::move(*Trainer::open(how, *gpu));
    const std::int64_t size = waiting->step_size();
    const ImageSet images = digits();
    std::vector<StepReport> reports;
    for (int step = 0; step < 12; ++step) {
      ASSERT_TRUE(ahead->start(some(images, step * size, size)));
    }
    for (int step = 0; step < 12; ++step) {
      const auto one = waiting->step(some(images, step * size, size));
      const auto other = ahead->report();
      ASSERT_TRUE(one && other);
      EXPECT_EQ(one->loss, other->loss) << step;
      EXPECT_EQ(one->gradient_norm, other->gradient_norm) << step;
      EXPECT_EQ(one->scale, other->scale) << step;
      EXPECT_EQ(one->skipped, other->skipped) << step;
      EXPECT_EQ(one->attempt, other->attempt) << step;
    }
    EXPECT_EQ(differing(*waiting, *ahead), "");
  }
}

}  // namespace
}  // namespace halfwatt

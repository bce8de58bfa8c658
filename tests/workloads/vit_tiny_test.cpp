// vit_tiny as `halfwatt bench` measures it: the plan's bytes against those of the process.

#include <gtest/gtest.h>

#include "engine/backend/cpu/cpu_backend.h"
#include "workloads/infer_task.h"
#include "workloads/resident.h"
#include "workloads/train_task.h"

namespace halfwatt {
namespace {

constexpr double kMebi = 1024 * 1024;

void expect_resident(EngineTask& task, const char* precision, double batch) {
  Setting setting;
  setting.set("precision", std::string(precision));
  setting.set("batch", batch);
  const auto predicted = task.predict(setting);
  ASSERT_TRUE(predicted) << predicted.error().message;
  if (!restart_resident_peak()) {
    GTEST_SKIP() << "the kernel does not reset VmHWM for us";
  }
  const auto step = task.prepare(setting);
  ASSERT_TRUE(step) << step.error().message;
  for (int at = 0; at < 2; ++at) {
    ASSERT_TRUE((*step)());
  }
  const double planned = predicted->memory->value();
  const double held = resident_peak()->value();
  EXPECT_LT(held, 1.05 * planned + 64 * kMebi) << precision;
  EXPECT_GT(held, 0.95 * planned) << precision << ": the plan promises more than is used";
  testing::Test::RecordProperty(precision, std::to_string(held / planned));
}

TEST(VitTiny, holds_as_much_memory_as_its_training_plan_says) {
  const auto backend = *open_cpu();
  const auto task = train_task({*vit_named("vit_tiny_patch16_224")}, {backend.get(), {}});
  for (const char* precision : {"fp32", "amp-bf16"}) {
    expect_resident(*task, precision, 16);
  }
}

TEST(VitTiny, holds_as_much_memory_as_its_forward_plan_says) {
  const auto backend = *open_cpu();
  const auto task = infer_task({*vit_named("vit_tiny_patch16_224")}, {backend.get(), {}});
  for (const char* precision : {"fp32", "amp-bf16"}) {
    expect_resident(*task, precision, 64);
  }
}

}  // namespace
}  // namespace halfwatt

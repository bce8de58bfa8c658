// vit_tiny as `halfwatt bench` measures it: the plan's bytes against those of the process.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "workloads/engine_workload.h"
#include "workloads/infer_task.h"
#include "workloads/probes.h"
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

// As `halfwatt bench --precision fp32,amp-bf16 --batch 4,16` has it, probes included.
TEST(VitTiny, holds_in_a_later_row_of_a_process_as_much_as_in_the_first) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  for (const char* precision : {"fp32", "amp-bf16"}) {
    ASSERT_TRUE(probe(*backend, *precision_named(precision)));
  }
  EngineWorkload workload(train_task({*vit_named("vit_tiny_patch16_224")}, {backend.get(), {}}),
                          clock, {});
  const std::vector<std::pair<std::string, double>> rows = {
      {"fp32", 4}, {"fp32", 16}, {"amp-bf16", 4}, {"amp-bf16", 16}};
  for (const auto& [precision, batch] : rows) {
    Setting setting;
    setting.set("precision", precision);
    setting.set("batch", batch);
    const double before = workload.work_done().count;
    ASSERT_TRUE(workload.apply(setting));
    while (workload.work_done().count < before + 2) {
      ASSERT_FALSE(workload.error());
      clock.sleep_until(clock.now() + Seconds(0.01));
    }
    const auto held = workload.work_done().resident_peak;
    if (!held) {
      GTEST_SKIP() << "the kernel does not reset VmHWM for us";
    }
    const double planned = workload.predict(setting)->memory->value();
    EXPECT_LT(held->value(), 1.05 * planned + 64 * kMebi) << precision << " " << batch;
    EXPECT_GT(held->value(), 0.95 * planned) << precision << " " << batch;
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

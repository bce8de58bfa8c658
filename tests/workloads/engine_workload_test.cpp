#include "workloads/engine_workload.h"

#include <gtest/gtest.h>

#include "device/unmetered_cpu.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "measure/meter.h"
#include "measure/record_json.h"
#include "workloads/infer_task.h"
#include "workloads/train_task.h"

namespace halfwatt {
namespace {

constexpr Bytes kMuch{1e12};

Setting setting(const std::string& precision, double batch) {
  Setting all;
  all.set("precision", precision);
  all.set("batch", batch);
  return all;
}

ModelChoice micro() { return {*vit_named("vit_micro_patch4_16")}; }

MeterRules quick() {
  MeterRules rules;
  rules.settle = {Seconds(0.05), Seconds(0.2), Seconds(0.05), 1, 1};
  rules.window.min_duration = Seconds(0.2);
  rules.window.max_variation = 100;  // whoever else uses this machine
  return rules;
}

Result<Measurement> measured(EngineWorkload& workload, Clock& clock, const Setting& at) {
  UnmeteredCpu cpu;
  Meter meter(clock, cpu, workload, quick(), [] { return false; });
  if (const auto applied = workload.apply(at); !applied) {
    return applied.error();
  }
  return meter.measure(at, std::nullopt);
}

TEST(EngineWorkload, is_measured_like_any_other) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  const OpRates rates = {
      {"matmul f32>f32", {Seconds(1e-6), Seconds(0), Seconds(1e-10), Seconds(0)}}};
  EngineWorkload workload(train_task(micro(), {backend.get(), rates}), clock, kMuch);
  const auto window = measured(workload, clock, setting("fp32", 4));
  ASSERT_TRUE(window) << window.error().message;
  EXPECT_TRUE(window->counts());
  EXPECT_EQ(window->numerical_state, NumericalState::live);
  EXPECT_EQ(window->work.items_per_step, 4);
  EXPECT_EQ(window->work.unit, "image");
  EXPECT_GE(window->work.steps, 20);
  ASSERT_TRUE(window->work.step_time_p05);
  ASSERT_TRUE(window->work.step_time_p95);
  EXPECT_LE(*window->work.step_time_p05, window->work.step_time);
  EXPECT_LE(window->work.step_time, *window->work.step_time_p95);
  EXPECT_EQ(window->energy.value, std::nullopt) << "unknown, and not zero";
  ASSERT_TRUE(window->predicted);
  EXPECT_GT(window->predicted->step_time, Seconds(0));
  EXPECT_GT(*window->predicted->flops, 0);
  const std::string line = measurement_line(*window);
  EXPECT_EQ(measurement_line(*parse_measurement_line(line, "a:1")), line);
}

TEST(EngineWorkload, goes_on_counting_steps_over_settings) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  EngineWorkload workload(infer_task(micro(), {backend.get(), {}}), clock, kMuch);
  ASSERT_TRUE(measured(workload, clock, setting("fp32", 4)));
  const double before = workload.work_done().count;
  const auto window = measured(workload, clock, setting("bf16", 2));
  ASSERT_TRUE(window);
  EXPECT_TRUE(window->counts());
  EXPECT_EQ(window->work.items_per_step, 2);
  EXPECT_GT(workload.work_done().count, before);
}

TEST(EngineWorkload, is_dead_where_its_numbers_are) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  EngineWorkload workload(train_task(micro(), {backend.get(), {}}), clock, kMuch);
  const auto window = measured(workload, clock, setting("O3", 4));
  ASSERT_TRUE(window);
  EXPECT_EQ(window->numerical_state, NumericalState::dead);
  EXPECT_FALSE(window->counts());
  EXPECT_TRUE(window->settled());
}

TEST(EngineWorkload, does_not_try_what_cannot_fit) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  EngineWorkload workload(train_task(micro(), {backend.get(), {}}), clock, Bytes(1e5));
  const auto window = measured(workload, clock, setting("fp32", 64));
  ASSERT_TRUE(window);
  EXPECT_EQ(window->notes, Notes{WindowNote::does_not_fit});
  EXPECT_EQ(window->numerical_state, NumericalState::unknown);
  EXPECT_EQ(backend->allocated(), 0U);
}

TEST(EngineWorkload, gives_back_all_memory_before_it_takes_more) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  EngineWorkload workload(train_task(micro(), {backend.get(), {}}), clock, kMuch);
  for (const double batch : {16, 4}) {
    const Setting at = setting("fp32", batch);
    ASSERT_TRUE(workload.apply(at));
    EXPECT_EQ(static_cast<double>(backend->allocated()), workload.predict(at)->memory->value());
  }
}

TEST(EngineWorkload, refuses_a_setting_that_cannot_be_planned) {
  SteadyClock clock;
  const auto backend = *open_cpu();
  EngineWorkload workload(infer_task(micro(), {backend.get(), {}}), clock, kMuch);
  EXPECT_FALSE(workload.apply(setting("fp12", 4)));
  EXPECT_EQ(workload.predict(setting("fp12", 4)).has_value(), false);
}

}  // namespace
}  // namespace halfwatt

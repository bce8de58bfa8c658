// The protocol on a real card's code path: NvmlCard over the fake NVML, on virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "device/fake_machine.h"
#include "measure/meter.h"

namespace halfwatt {
namespace {

constexpr double kStep = 0.25;  // s

/// Does a step every quarter of a second, and what a test wants at a time.
class Stepper final : public Workload {
 public:
  explicit Stepper(Clock& clock) : clock_(&clock) {}
  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return {}; }
  Result<void> apply(const Setting&) override { return {}; }
  Result<void> start() override { return {}; }
  WorkDone work_done() override {
    const double steps = std::floor(clock_->now().value() / kStep + 1e-9);
    if (then_ && clock_->now() >= at_) {
      std::exchange(then_, nullptr)();
    }
    return {steps, Seconds(steps * kStep)};
  }
  NumericalState numerical_state() override { return NumericalState::live; }
  std::optional<Prediction> predict(const Setting&) const override { return std::nullopt; }
  void stop() override {}

  void at(Seconds time, std::function<void()> then) {
    at_ = time;
    then_ = std::move(then);
  }

 private:
  Clock* clock_;
  WorkloadInfo info_;
  Seconds at_;
  std::function<void()> then_;
};

/// A fake card under a load for which its limit of 300 W is binding, and a meter.
struct Bench {
  FakeMachine machine;
  FakeClock clock{machine.nvml};
  std::unique_ptr<NvmlCard> card;
  Stepper workload{clock};

  explicit Bench(fake_nvml::Script script = FakeNvml::cards(1))
      : machine(on_virtual_time(std::move(script))) {
    machine.nvml.advance(Seconds(60));
    auto opened = machine.open_card();
    EXPECT_TRUE(opened) << opened.error().message;
    card = std::move(*opened);
  }

  static fake_nvml::Script on_virtual_time(fake_nvml::Script script) {
    script.virtual_clock = true;
    script.cards[0].found_mw = 300'000;
    return script;
  }

  Result<Measurement> measure() {
    Meter meter(clock, *card, workload, MeterRules{}, [] { return false; });
    return meter.measure({}, Watts(300));
  }
};

/// Where a window of these is, between settling with the check before it and its end.
constexpr Seconds kInWindow{60 + 5 + 2 + 3};

TEST(MeterOnCard, measures_by_a_counter_that_was_checked) {
  Bench bench;
  const auto measured = bench.measure();
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->notes, Notes{});
  EXPECT_EQ(measured->energy.method, EnergyMethod::counter);
  EXPECT_NEAR((*measured->energy.value / measured->work.duration).value(), 300, 1);
  EXPECT_NEAR(measured->work.steps, measured->work.duration.value() / kStep, 0.01);
  EXPECT_NEAR(*measured->energy.relative_error, 0.06, 1e-9);
  EXPECT_LT(*measured->energy.window_error, 0.002);
  EXPECT_TRUE(bench.card->info().energy_is_checked);
  EXPECT_LT(measured->started, kInWindow);
  EXPECT_GT(bench.clock.now(), kInWindow);
}

TEST(MeterOnCard, checks_the_counter_once) {
  Bench bench;
  Meter meter(bench.clock, *bench.card, bench.workload, MeterRules{}, [] { return false; });
  ASSERT_TRUE(meter.measure({}, Watts(300)));
  const auto looks = bench.machine.nvml.calls("nvmlDeviceGetTotalEnergyConsumption");
  ASSERT_TRUE(meter.measure({}, Watts(300)));
  // Some 50 about each edge, and one a second.
  EXPECT_LT(bench.machine.nvml.calls("nvmlDeviceGetTotalEnergyConsumption"), looks + 130);
}

TEST(MeterOnCard, asks_for_what_is_slow_once_a_second) {
  Bench bench;
  const auto before = bench.machine.nvml.calls("nvmlDeviceGetMemoryInfo_v2");
  ASSERT_TRUE(bench.measure());
  const double seconds = bench.clock.now().value() - 60;
  const auto looks = bench.machine.nvml.calls("nvmlDeviceGetMemoryInfo_v2") - before;
  EXPECT_LT(static_cast<double>(looks), seconds * 2 + 4);  // twice a second while it settles
}

TEST(MeterOnCard, sums_power_up_where_the_counter_is_wrong) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].energy_scale = 0.57;
  Bench bench(std::move(script));
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->notes, Notes{});
  EXPECT_EQ(measured->energy.method, EnergyMethod::power_integral);
  EXPECT_NEAR((*measured->energy.value / measured->work.duration).value(), 300, 1);
  EXPECT_NEAR(*measured->energy.relative_error, 0.11, 1e-9);
  EXPECT_NEAR(measured->work.steps, std::round(measured->work.steps), 1e-9);
}

TEST(MeterOnCard, sums_power_up_where_there_is_no_counter) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].no_energy_counter = true;
  Bench bench(std::move(script));
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->energy.method, EnergyMethod::power_integral);
  EXPECT_NEAR((*measured->energy.value / measured->work.duration).value(), 300, 1);
}

TEST(MeterOnCard, trusts_a_counter_that_only_a_load_in_step_with_the_sensor_contradicts) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].demand_mw = 290'000;  // a sensor that looks at 25 of 100 ms sees one half
  script.cards[0].swing_ms = 100;
  script.cards[0].swing_low_mw = 100'000;
  Bench bench(std::move(script));
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(bench.card->info().energy_method, EnergyMethod::counter);
  EXPECT_NEAR((*measured->energy.value / measured->work.duration).value(), 195, 4);
  EXPECT_TRUE(measured->counts());
}

TEST(MeterOnCard, notes_that_another_process_came) {
  Bench bench;
  bench.workload.at(
      kInWindow, [&] { bench.machine.nvml.set_processes({fake_nvml::Process{.pid = 4242}}); });
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->notes, Notes{WindowNote::foreign_process});
}

TEST(MeterOnCard, holds_no_process_of_its_own_against_the_window) {
  Bench bench;
  bench.card->set_own_processes([](pid_t process) { return process == 4242; });
  bench.machine.nvml.set_processes({fake_nvml::Process{.pid = 4242}});
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->notes, Notes{});
}

TEST(MeterOnCard, notes_that_somebody_changed_the_limit) {
  Bench bench;
  bench.workload.at(kInWindow, [&] { bench.machine.nvml.set_requested(310'000); });
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  ASSERT_FALSE(measured->notes.empty());
  EXPECT_EQ(measured->notes.front(), WindowNote::limit_reverted);
  EXPECT_FALSE(measured->counts());
}

TEST(MeterOnCard, notes_a_limit_that_is_not_enforced) {
  Bench bench;
  bench.workload.at(kInWindow, [&] {
    fake_nvml::Happening cap;
    cap.cap_mw = 250'000;
    bench.machine.nvml.happen(cap);
  });
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  ASSERT_FALSE(measured->notes.empty());
  EXPECT_EQ(measured->notes.front(), WindowNote::not_enforced);
}

TEST(MeterOnCard, notes_a_driver_that_was_loaded_anew) {
  Bench bench;
  bench.workload.at(kInWindow, [&] {
    fake_nvml::Happening reload;
    reload.reload = true;
    bench.machine.nvml.happen(reload);
  });
  const auto measured = bench.measure();
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->counts());
  EXPECT_NE(
      std::find(measured->notes.begin(), measured->notes.end(), WindowNote::counter_reset),
      measured->notes.end());
}

TEST(MeterOnCard, is_interrupted_while_it_checks_the_counter) {
  Bench bench;
  Meter meter(bench.clock, *bench.card, bench.workload, MeterRules{},
              [&] { return bench.clock.now() > Seconds(61); });
  const auto checked = meter.check_energy();  // from 60 to 62 s
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::interrupted);
  EXPECT_LT(bench.clock.now(), Seconds(61.1));
  EXPECT_FALSE(bench.card->info().energy_is_checked);
}

TEST(MeterOnCard, ends_with_one_line_when_the_card_is_lost) {
  for (const double seconds : {60.5, 66.0, 70.0}) {  // it settles, the check, the window
    fake_nvml::Script script = FakeNvml::cards(1);
    fake_nvml::Fault lost;
    lost.symbol = "nvmlDevice*";
    lost.code = 15;
    lost.from_s = seconds;
    script.faults.push_back(lost);
    Bench bench(std::move(script));
    const auto measured = bench.measure();
    ASSERT_FALSE(measured) << seconds;
    EXPECT_EQ(measured.error().kind, ErrorKind::device);
    EXPECT_EQ(measured.error().message.find('\n'), std::string::npos);
    EXPECT_LT(bench.clock.now(), Seconds(seconds + 1.2));
  }
}

}  // namespace
}  // namespace halfwatt

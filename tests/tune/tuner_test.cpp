#include "tune/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "guard/scoped_limit_guard.h"
#include "guard/simulated_limit.h"
#include "tune/curve.h"
#include "tune/playback.h"

namespace halfwatt {
namespace {

RecordedSeries series_named(std::string_view name) {
  const auto all = embedded_study();
  for (const RecordedSeries& each : *all) {
    if (each.info.name == name) {
      return each;
    }
  }
  ADD_FAILURE() << "no series " << name;
  return {};
}

/// A simulated card with one series of the study on it.
struct Bench {
  VirtualClock clock;
  RecordedSeries recorded = series_named("study:train-amp-fp16");
  SimulatedCard card;
  RecordedWorkload workload;
  SimulatedLimit control{card};

  explicit Bench(std::vector<Fault> faults = {}, Disturbance disturbance = {})
      : card({DeviceId::Kind::simulated, "rtx3090"}, recorded.card, clock, std::move(faults)),
        workload(recorded.info,
                 recorded.curve,
                 recorded.demand,
                 NumericalState::live,
                 card,
                 disturbance,
                 1) {}

  Result<void> run(
      const Search& search,
      std::vector<Measurement>& measured,
      const Tuner::OnMeasurement& tell = [](const auto&) { return Result<void>(); },
      const std::function<bool()>& interrupted = [] { return false; }) {
    Result<ScopedLimitGuard> guard = ScopedLimitGuard::hold(control);
    Tuner tuner({clock, card, workload, &*guard}, MeterRules{}, interrupted);
    return tuner.run(search, measured, tell);
  }
};

ListSearch list(std::vector<double> limits) {
  return ListSearch(power_limit_knob(), std::move(limits), 1, false);
}

TEST(Tuner, measures_what_the_search_asks_for_and_puts_the_limit_back) {
  Bench bench;
  std::vector<Measurement> measured;
  ASSERT_TRUE(bench.run(list({480, 300}), measured));
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_NEAR(measured[1].work.step_time.value(),
              bench.workload.recorded_step_time(Watts(300)).value(), 1e-9);
  EXPECT_EQ(bench.card.limit(), Watts(390));
}

TEST(Tuner, warms_up_once_before_the_first_window) {
  Bench bench;
  std::vector<Measurement> measured;
  ASSERT_TRUE(bench.run(list({480, 470}), measured));
  EXPECT_GT(measured[0].started, Seconds(30));  // the card's heat sink needs that long
  EXPECT_LT(measured[1].started - measured[0].started, Seconds(30));
}

TEST(Tuner, repeats_a_rejected_window_and_goes_on_when_it_counts) {
  // The card is shared for a while: every window in that time is rejected.
  Bench bench({{Fault::Kind::foreign_process, Seconds(0), Seconds(125), 0}});
  std::vector<Measurement> measured;
  ASSERT_TRUE(bench.run(list({480}), measured));
  ASSERT_GE(measured.size(), 2U);
  EXPECT_FALSE(measured.front().counts());
  EXPECT_TRUE(measured.back().counts());
}

TEST(Tuner, keeps_the_third_rejected_window_with_a_note_and_goes_on) {
  Bench bench({{Fault::Kind::foreign_process, Seconds(0), Seconds(1e6), 0}});
  std::vector<Measurement> measured;
  ASSERT_TRUE(bench.run(list({480, 300}), measured));
  ASSERT_EQ(measured.size(), 6U);
  EXPECT_EQ(measured[2].notes.back(), WindowNote::rejected_too_often);
}

TEST(Tuner, puts_the_limit_back_when_it_is_interrupted) {
  Bench bench;
  std::vector<Measurement> measured;
  int asked = 0;
  const Result<void> done = bench.run(
      list({480, 300, 200}), measured, [](const auto&) { return Result<void>(); },
      [&asked] { return ++asked > 300; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(bench.card.limit(), Watts(390));
}

TEST(Tuner, puts_the_limit_back_when_the_record_cannot_be_written) {
  Bench bench;
  std::vector<Measurement> measured;
  const Result<void> done = bench.run(list({300, 200}), measured, [](const auto&) {
    return Result<void>(bad_input("disk full"));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(measured.size(), 1U);
  EXPECT_EQ(bench.card.limit(), Watts(390));
}

TEST(Tuner, says_so_when_the_limit_cannot_be_put_back) {
  Bench bench({{Fault::Kind::set_refused, Seconds(100), Seconds(1e9), 0}});
  std::vector<Measurement> measured;
  const Result<void> done = bench.run(list({300}), measured);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::not_restored);
}

TEST(Tuner, ends_when_the_card_is_lost) {
  Bench bench({{Fault::Kind::lost, Seconds(100), Seconds(1e9), 0}});
  std::vector<Measurement> measured;
  const Result<void> done = bench.run(list({300, 200}), measured);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().kind, ErrorKind::interrupted);
}

TEST(Tuner, lets_time_go_on_from_an_earlier_session) {
  Bench bench;
  std::vector<Measurement> measured;
  ASSERT_TRUE(bench.run(list({480}), measured));
  const Seconds end = measured.back().started + measured.back().work.duration;
  Bench again;
  ASSERT_TRUE(again.run(list({480, 300}), measured));
  EXPECT_GT(measured[1].started, end);
}

double share_at(const std::vector<Measurement>& measured, double limit) {
  Series series;
  series.measurements = measured;
  const Curve curve = build_curve(series, Reference::top);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].x == limit) {
      return curve.share(i);
    }
  }
  return 0;
}

// What the share at 250 W comes to, over the true one, when
// the case warms up and steps get 8 % slower.
double share_under_ramp(const Search& search) {
  Disturbance ramp;
  ramp.thermal_ramp = 0.08;
  ramp.ramp_time = Seconds(600);
  Bench bench({}, ramp);
  std::vector<Measurement> measured;
  EXPECT_TRUE(bench.run(search, measured));
  return share_at(measured, 250) / (bench.workload.recorded_step_time(Watts(480)) /
                                    bench.workload.recorded_step_time(Watts(250)));
}

/// A guard whose guardian dies in the first window.
class DisturbedGuard final : public LimitGuard {
 public:
  explicit DisturbedGuard(SimulatedLimit& control) : inner_(*ScopedLimitGuard::hold(control)) {}
  Watts found() const override { return inner_.found(); }
  Result<Watts> set(Watts limit) override { return inner_.set(limit); }
  Result<void> restore() override { return inner_.restore(); }
  Result<void> check() override {
    return checks_++ > 0 ? Result<void>() : Error{ErrorKind::device, "the guardian died"};
  }

 private:
  ScopedLimitGuard inner_;
  int checks_ = 0;
};

TEST(Tuner, voids_the_window_in_which_the_guardian_died_and_measures_again) {
  Bench bench;
  DisturbedGuard guard(bench.control);
  Tuner tuner({bench.clock, bench.card, bench.workload, &guard}, MeterRules{},
              [] { return false; });
  std::vector<Measurement> measured;
  const Result<void> done =
      tuner.run(list({300}), measured, [](const auto&) { return Result<void>(); });
  ASSERT_TRUE(done);
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_FALSE(measured[0].counts());
  EXPECT_TRUE(measured[1].counts());
}

TEST(Tuner, ascending_sweep_under_a_thermal_ramp_is_biased_and_the_interleaved_one_is_not) {
  std::vector<double> ascending;
  for (double limit = 150; limit <= 480; limit += 30) {
    ascending.push_back(limit);
  }
  ascending.push_back(250);
  std::sort(ascending.begin(), ascending.end());
  std::vector<double> descending(ascending.rbegin(), ascending.rend());
  const double biased = share_under_ramp(list(ascending));
  const double fair = share_under_ramp(
      ReferencedSearch(power_limit_knob(), 480,
                       std::make_unique<ListSearch>(power_limit_knob(), descending, 1, true)));
  EXPECT_GT(std::abs(biased - 1), 0.01);
  EXPECT_LT(std::abs(fair - 1), 0.005);
}

}  // namespace
}  // namespace halfwatt

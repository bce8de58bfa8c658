#include "search/runs.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/check.h"
#include "guard/scoped_limit_guard.h"
#include "guard/simulated_limit.h"
#include "tune/limit_search.h"
#include "tune/tuner.h"
#include "tune/verdict.h"

namespace halfwatt::bench {
namespace {

constexpr double kTolerance = 10;  // W
constexpr double kHalfAPoint = 0.5;
constexpr double kGridSteps = 50;
constexpr double kGridWatts = 25;

Series search(const TrueCurve& truth, const Disturbance& disturbance, std::uint64_t seed) {
  VirtualClock clock;
  SimulatedCard card({DeviceId::Kind::simulated, truth.name}, truth.card, clock);
  RecordedWorkload workload({truth.name, {}, "step", 1}, truth.points, truth.demand,
                            NumericalState::live, card, disturbance, seed);
  SimulatedLimit control(card);
  ScopedLimitGuard guard = *ScopedLimitGuard::hold(control);
  const LimitSpace space{power_limit_knob(kTolerance), truth.card.limits.min.value(),
                         truth.card.limits.max.value(), kTolerance};
  const ReferencedSearch search(
      space.knob, space.max,
      std::make_unique<LimitSearch>(space, space.max,
                                    std::vector<double>(std::begin(kShares), std::end(kShares)),
                                    SearchBudget{}));
  Tuner tuner({clock, card, workload, &guard}, MeterRules{}, [] { return false; });
  Series series;
  series.knob = space.knob;
  series.limits = truth.card.limits;
  const Result<void> done =
      tuner.run(search, series.measurements, [](const auto&) { return Result<void>(); });
  HALFWATT_CHECK(done.has_value(), "a simulated run cannot fail");
  return series;
}

}  // namespace

Run run_once(const TrueCurve& truth, const Disturbance& disturbance, std::uint64_t seed) {
  const Series series = search(truth, disturbance, seed);
  // By the same way as the program's own answer.
  const Result<Verdict> answer = analyze({series}, AnalysisOptions{});
  const SeriesVerdict& found = answer->series.front();
  Run run;
  for (std::size_t i = 0; i < std::size(kShares); ++i) {
    const double percent = kShares[i];
    const KeepVerdict& verdict = found.keep[i];
    const double limit = verdict.limit.value_or(truth.points.back().limit.value());
    const double right = truth.keep(percent);
    const bool off = std::abs(limit - right) > kTolerance;
    run.exact += limit == right ? 1 : 0;
    run.resolved += verdict.resolvable ? 1 : 0;
    run.off += off && verdict.resolvable ? 1 : 0;
    run.kept += 100 * truth.share(limit) >= percent - kHalfAPoint ? 1 : 0;
  }
  run.energy_excess = truth.energy(found.least->limit) / truth.least_energy() - 1;
  for (const Measurement& each : series.measurements) {
    run.steps += each.work.steps;
  }
  run.limits = static_cast<int>(found.curve.points.size());
  return run;
}

std::vector<Run> run_seeds(const TrueCurve& truth, const Disturbance& disturbance, int seeds) {
  std::vector<Run> runs(static_cast<std::size_t>(seeds));
  std::vector<std::thread> threads;
  const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::size_t i = worker; i < runs.size(); i += workers) {
        runs[i] = run_once(truth, disturbance, 1000 * i + 7);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return runs;
}

double grid_steps(const TrueCurve& truth) {
  const double range = (truth.card.limits.max - truth.card.limits.min).value();
  return kGridSteps * (std::floor(range / kGridWatts) + 1);
}

std::vector<Noise> noises() {
  std::vector<Noise> all;
  for (const bool slow : {false, true}) {
    for (const double window : {0.0, 0.002, 0.005}) {
      Disturbance disturbance;
      disturbance.window_noise = window;
      if (slow) {
        disturbance.drift = 0.003;
        disturbance.outlier_share = 0.01;
      }
      const std::string name = window == 0 ? "none" : window < 0.003 ? "0.2 %" : "0.5 %";
      all.push_back({name + (slow ? " + drift and outliers" : ""), disturbance, window, slow});
    }
  }
  return all;
}

void Summary::add(const Run& run, double steps_of_grid) {
  runs_ += 1;
  fine_ += run.off == 0 ? 1 : 0;
  exact_ += run.exact;
  resolved_ += run.resolved;
  off_ += run.off;
  kept_ += run.kept;
  energy_excess_.push_back(run.energy_excess);
  worst_energy_ = std::max(worst_energy_, run.energy_excess);
  steps_ += run.steps / steps_of_grid;
  most_steps_ = std::max(most_steps_, run.steps / steps_of_grid);
  limits_ += run.limits;
  most_limits_ = std::max(most_limits_, run.limits);
}

double Summary::energy_within(double percent) const {
  const auto within =
      std::count_if(energy_excess_.begin(), energy_excess_.end(),
                    [percent](double excess) { return 100 * excess <= percent; });
  return 100 * static_cast<double>(within) / runs_;
}

}  // namespace halfwatt::bench

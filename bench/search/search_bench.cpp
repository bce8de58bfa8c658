// How well the limit search answers on curves whose true answers are known: ten recorded ones and
// fifty made-up families, over many seeds and four kinds of noise, through the whole measuring
// protocol on virtual time. Prints one row a curve and the pooled figures.
//
//   bench_search [--seeds N] [--made-up]

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "search/curves.h"
#include "tune/energy.h"
#include "tune/limit_search.h"
#include "tune/shares.h"
#include "tune/tuner.h"

namespace halfwatt::bench {
namespace {

constexpr double kShares[] = {80, 90, 95};
constexpr double kTolerance = 10;       // W
constexpr double kGridSteps = 50;       // a descending sweep: steps a limit
constexpr double kGridWatts = 25;

struct Noise {
  const char* name;
  Disturbance disturbance;
};

std::vector<Noise> noises() {
  const auto with = [](double window, bool slow) {
    Disturbance disturbance;
    disturbance.window_noise = window;
    if (slow) {
      disturbance.drift = 0.003;
      disturbance.outlier_share = 0.01;
    }
    return disturbance;
  };
  return {{"none", with(0, false)},          {"0.2 %", with(0.002, false)},
          {"0.5 %", with(0.005, false)},     {"none + drift", with(0, true)},
          {"0.2 % + drift", with(0.002, true)}, {"0.5 % + drift", with(0.005, true)}};
}

struct Run {
  int off = 0;             // thresholds more than 10 W off
  int resolved = 0;
  int resolved_and_off = 0;
  int exact = 0;
  int share_kept = 0;      // true share at least the target minus half a point
  double energy_excess = 0;
  double steps = 0;
  int limits = 0;
};

Run run_once(const TrueCurve& truth, const Disturbance& disturbance, std::uint64_t seed) {
  VirtualClock clock;
  SimulatedCard card({DeviceId::Kind::simulated, truth.name}, truth.card, clock);
  RecordedWorkload workload({truth.name, {}, "step", 1}, truth.points, truth.demand,
                            NumericalState::live, card, disturbance, seed);
  SimulatedLimit control(card);
  LimitGuard guard = *LimitGuard::hold(control);
  const LimitSpace space{power_limit_knob(), truth.card.limits.min.value(),
                         truth.card.limits.max.value(), 10};
  const ReferencedSearch search(
      space.knob, space.max,
      std::make_unique<LimitSearch>(space, std::vector<double>(kShares, kShares + 3),
                                    SearchBudget{}));
  Tuner tuner({clock, card, workload, &guard}, MeterRules{}, [] { return false; });
  Series series;
  if (!tuner.run(search, series.measurements, [](const auto&) { return Result<void>(); })) {
    std::abort();
  }
  const Curve curve = build_curve(series, Reference::top);
  const Shares shares(curve);
  Run run;
  for (const double percent : kShares) {
    const KeepVerdict verdict = shares.keep(percent, 10);
    const double right = truth.keep(percent);
    const double limit = verdict.limit.value_or(space.max);
    const bool off = std::abs(limit - right) > kTolerance;
    run.exact += limit == right ? 1 : 0;
    run.off += off && verdict.resolvable ? 1 : 0;
    run.resolved += verdict.resolvable ? 1 : 0;
    run.resolved_and_off += off && verdict.resolvable ? 1 : 0;
    run.share_kept += 100 * truth.share(limit) >= percent - 0.5 ? 1 : 0;
  }
  const auto least = least_energy(curve, space.knob);
  run.energy_excess = truth.energy(least->limit) / truth.least_energy() - 1;
  for (const Measurement& each : series.measurements) {
    run.steps += each.work.steps;
  }
  run.limits = static_cast<int>(curve.points.size());
  return run;
}

double grid_steps(const TrueCurve& truth) {
  const double range = (truth.card.limits.max - truth.card.limits.min).value();
  return kGridSteps * (std::floor(range / kGridWatts) + 1);
}

std::vector<Run> run_all(const TrueCurve& truth, const Disturbance& disturbance, int seeds) {
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

struct Summary {
  double n = 0;
  double fine = 0;  // runs with all three within 10 W or marked
  double exact = 0;
  double resolved = 0;
  double resolved_off = 0;
  double kept = 0;
  double energy_half = 0;
  double energy_one = 0;
  double worst_energy = 0;
  double steps = 0;
  double most_steps = 0;
  int most_limits = 0;
  double limits = 0;
  double grid = 0;

  void add(const Run& run, double grid_of_curve) {
    n += 1;
    fine += run.off == 0 ? 1 : 0;
    exact += run.exact;
    resolved += run.resolved;
    resolved_off += run.resolved_and_off;
    kept += run.share_kept;
    energy_half += run.energy_excess <= 0.005 ? 1 : 0;
    energy_one += run.energy_excess <= 0.01 ? 1 : 0;
    worst_energy = std::max(worst_energy, run.energy_excess);
    steps += run.steps / grid_of_curve;
    most_steps = std::max(most_steps, run.steps / grid_of_curve);
    limits += run.limits;
    most_limits = std::max(most_limits, run.limits);
  }
  void print(const std::string& name) const {
    fmt::print("{:<34} {:7.2f} {:7.2f} {:8.2f} {:9.2f} {:7.2f} {:8.2f} {:8.2f} {:7.2f} {:6.2f} {:6.2f} {:5.1f} {:3d}\n",
               name, 100 * fine / n, 100 * exact / n / 3, 100 * resolved / n / 3,
               resolved > 0 ? 100 * resolved_off / resolved : 0, 100 * kept / n / 3,
               100 * energy_half / n, 100 * energy_one / n, 100 * worst_energy, steps / n,
               most_steps, limits / n, most_limits);
  }
};

void bench(const std::vector<TrueCurve>& curves, int seeds) {
  for (const Noise& noise : noises()) {
    const bool random = noise.disturbance.window_noise > 0 || noise.disturbance.drift > 0;
    fmt::print("\nnoise {}, {} seeds a curve\n", noise.name, random ? seeds : 1);
    fmt::print("{:<34} {:>7} {:>7} {:>8} {:>9} {:>7} {:>8} {:>8} {:>7} {:>6} {:>6} {:>5} {:>3}\n", "curve",
               "fine%", "exact%", "resolvd%", "res.off%", "kept%", "E<=.5%", "E<=1%", "worstE%",
               "steps", "max", "lims", "max");
    Summary pooled;
    for (const TrueCurve& curve : curves) {
      Summary one;
      for (const Run& run : run_all(curve, noise.disturbance, random ? seeds : 1)) {
        one.add(run, grid_steps(curve));
        pooled.add(run, grid_steps(curve));
      }
      one.print(curve.name);
    }
    pooled.print("pooled");
  }
}

}  // namespace
}  // namespace halfwatt::bench

int main(int argc, char** argv) {
  int seeds = 1000;
  bool made_up = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--made-up") == 0) {
      made_up = true;
    } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      seeds = std::max(1, std::atoi(argv[++i]));
    }
  }
  std::vector<halfwatt::bench::TrueCurve> curves = halfwatt::bench::study_curves();
  if (made_up) {
    curves.clear();
    for (std::uint64_t family = 1; family <= 50; ++family) {
      curves.push_back(halfwatt::bench::made_up_curve(family));
    }
  }
  halfwatt::bench::bench(curves, seeds);
  return 0;
}

#include "workloads/probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "engine/infer/inference.h"
#include "engine/models/vit.h"
#include "engine/train/trainer.h"
#include "measure/statistics.h"
#include "workloads/plan_run.h"

namespace halfwatt {
namespace {

struct ProbedModel {
  std::string_view model;
  std::int64_t depth;
  std::int64_t batch;
  bool infers = false;  ///< its inference is timed too
};
// Launches and rows show in the first two. The third has weights that do not stay in a cache,
// as those of any model of whole depth; the values of the fourth do not either. The last has
// the widths of vit_base.
constexpr std::array<ProbedModel, 5> kProbed = {{{"vit_micro_patch4_16", 2, 4, true},
                                                 {"vit_micro_patch4_16", 2, 32},
                                                 {"vit_tiny_patch16_224", 12, 1, true},
                                                 {"vit_tiny_patch16_224", 2, 8},
                                                 {"vit_base_patch16_224", 1, 2, true}}};
constexpr std::size_t kFewestRuns = 3;
constexpr std::size_t kMostRuns = 25;
constexpr Seconds kEnough{0.5};  // of one model, each way
// The rates outlive the moment at which they were measured, and whoever else was busy then: of
// all runs of a node the lower quartile is taken, which on an idle machine is next to the
// median.
constexpr double kUndisturbed = 0.25;

using Timed = std::map<std::string, std::vector<TimedNode>>;

Result<std::vector<std::vector<double>>> times_of_steps(PlanRun& run) {
  const SteadyClock clock;
  std::vector<std::vector<double>> times(run.plan().devices[0].steps.size());
  Seconds last;
  const auto note = [&](int, int step) {
    const Seconds now = clock.now();
    times[static_cast<std::size_t>(step)].push_back((now - last).value());
    last = now;
  };
  if (const auto warm = run.run(); !warm) {
    return warm.error();
  }
  const Seconds begun = clock.now();
  for (std::size_t runs = 0;
       runs < kFewestRuns || (runs < kMostRuns && clock.now() - begun < kEnough); ++runs) {
    last = clock.now();
    if (const auto done = run.run(note); !done) {
      return done.error();
    }
  }
  return times;
}

VitConfig config_of(const ProbedModel& shape) {
  VitConfig config = *vit_named(shape.model);
  config.depth = shape.depth;
  return config;
}

Result<Plan> training_plan(Backend& backend,
                           const Precision& precision,
                           const ProbedModel& shape) {
  TrainRecipe recipe;
  recipe.model = config_of(shape);
  recipe.precision = precision;
  recipe.batch = shape.batch;
  auto plans = training_plans(recipe, backend.target());
  return plans ? Result<Plan>(std::move(plans->front())) : plans.error();
}

Result<void> time_nodes(Backend& backend, Result<Plan> planned, Timed& timed) {
  if (!planned) {
    return planned.error();
  }
  constexpr std::uint64_t kSeed = 1;
  auto run = PlanRun::open(std::move(*planned), backend, kSeed);
  if (!run) {
    return run.error();
  }
  const auto times = times_of_steps(**run);
  if (!times) {
    return times.error();
  }
  const Plan& plan = (*run)->plan();
  for (std::size_t at = 0; at < times->size(); ++at) {
    const int node = plan.devices[0].steps[at].node;
    timed[rate_name(plan.graph, node)].push_back(
        {work_of(plan.graph, node), std::max(quantile((*times)[at], kUndisturbed), 1e-9)});
  }
  return {};
}

constexpr std::size_t kParts = 4;
using Parts = std::array<double, kParts>;  // launch, a row, a FLOP, a byte

Parts regressors(const TimedNode& node) {
  return {1, node.work.rows, node.work.flops, node.work.bytes};
}

double predicted(const TimedNode& node, const Parts& parts) {
  const Parts of = regressors(node);
  return std::inner_product(of.begin(), of.end(), parts.begin(), 0.0);
}

double misfit(std::span<const TimedNode> nodes, const Parts& parts) {
  double sum = 0;
  for (const TimedNode& node : nodes) {
    const double off = predicted(node, parts) - node.seconds;
    sum += off * off / node.seconds;
  }
  return sum;
}

// The least squares of the parts in `used`, bit by bit; nullopt if they cannot be told apart,
// or one would be negative.
std::optional<Parts> fitted(std::span<const TimedNode> nodes, unsigned used) {
  const auto is_used = [used](std::size_t part) { return (used >> part & 1U) != 0; };
  Parts scale{};  // FLOPs and ones in one matrix
  for (const TimedNode& node : nodes) {
    for (std::size_t i = 0; i < kParts; ++i) {
      scale[i] = std::max({scale[i], regressors(node)[i], 1e-300});
    }
  }
  std::array<std::array<double, kParts + 1>, kParts> system{};
  for (std::size_t i = 0; i < kParts; ++i) {
    system[i][i] = is_used(i) ? 0 : 1;
    for (const TimedNode& node : nodes) {
      const Parts x = regressors(node);
      for (std::size_t j = 0; j < kParts && is_used(i); ++j) {
        system[i][j] += is_used(j) ? x[i] / scale[i] * x[j] / scale[j] / node.seconds : 0;
      }
      system[i][kParts] += is_used(i) ? x[i] / scale[i] : 0;  // weight times time is 1
    }
  }
  for (std::size_t i = 0; i < kParts; ++i) {  // symmetric and positive: no pivoting
    const double original = system[i][i];
    for (std::size_t k = 0; k < i; ++k) {
      const double factor = system[i][k] / system[k][k];
      for (std::size_t j = k; j <= kParts; ++j) {
        system[i][j] -= factor * system[k][j];
      }
    }
    if (!(system[i][i] > 1e-9 * original)) {
      return std::nullopt;
    }
  }
  Parts parts{};
  for (std::size_t i = kParts; i-- > 0;) {
    parts[i] = system[i][kParts];
    for (std::size_t j = i + 1; j < kParts; ++j) {
      parts[i] -= system[i][j] * parts[j];
    }
    parts[i] /= system[i][i];
  }
  for (std::size_t i = 0; i < kParts; ++i) {
    parts[i] /= scale[i];
    if (!(parts[i] >= 0) || !std::isfinite(parts[i])) {
      return std::nullopt;
    }
  }
  return parts;
}

}  // namespace

OpRate fitted_rate(std::span<const TimedNode> nodes) {
  std::optional<Parts> best;
  double least = 0;
  for (unsigned used = 1; used < 1U << kParts;
       ++used) {  // every choice of parts, the others being 0
    const std::optional<Parts> parts = fitted(nodes, used);
    const double missed = parts ? misfit(nodes, *parts) : 0;
    if (parts && (!best || missed < least)) {
      best = parts;
      least = missed;
    }
  }
  HALFWATT_CHECK(best.has_value(), "a mean always fits");
  return {Seconds((*best)[0]), Seconds((*best)[1]), Seconds((*best)[2]), Seconds((*best)[3])};
}

Result<OpRates> probe(Backend& backend, const Precision& precision) {
  Timed timed;
  for (const ProbedModel& shape : kProbed) {
    if (auto done = time_nodes(backend, training_plan(backend, precision, shape), timed);
        !done) {
      return done.error();
    }
    if (!shape.infers) {
      continue;
    }
    // Has nodes that no training has: linear layers whose weights lie in panels.
    const InferRecipe inference{config_of(shape), precision, {}, shape.batch};
    if (auto done = time_nodes(backend, inference_plan(inference, backend.target()), timed);
        !done) {
      return done.error();
    }
  }
  OpRates rates;
  for (const auto& [name, nodes] : timed) {
    rates[name] = fitted_rate(nodes);
  }
  return rates;
}

}  // namespace halfwatt

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/precision.h"

namespace halfwatt {

/// How parameters follow their gradients; defaults as a ViT is fine-tuned.
struct Optimizer {
  enum class Kind { adamw, sgd };
  enum class Schedule { constant, cosine, linear };
  Kind kind = Kind::adamw;
  double rate = 1e-3;
  Schedule schedule = Schedule::constant;
  std::int64_t warmup = 0;  ///< steps, from 0 to the rate
  std::int64_t total = 0;   ///< steps, at which the rate has come down to the floor
  double floor = 0;         ///< share of the rate
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;  ///< of sgd
  double decay = 0.05;
  bool decay_all = false;                  ///< vectors, cls_token and pos_embed too
  std::vector<std::string> no_decay = {};  ///< patterns of parameters that do not decay either
  /// By parameter: its share of the rate, where that is not all of it.
  std::map<std::string, double, std::less<>> rate_shares = {};
  double max_norm = 0;  ///< gradients are clipped to; 0: not
  double average = 0;   ///< decay of the EMA of parameters; 0: none is kept
  // Of the loss scale.
  double growth = 2;
  double backoff = 0.5;
  std::int64_t interval = 2000;
  double floor_scale = 1;
};

std::string_view text(Optimizer::Schedule schedule);

/// States of the update beside those of the parameters: steps that were applied (i64), and
/// steps since the scale last changed (i32).
inline constexpr std::string_view kApplied = "step.applied";
inline constexpr std::string_view kScaleAge = "scaler.age";

/// The input that random numbers of a step follow from, i64 3: seed, attempt, first sample.
inline constexpr std::string_view kRandom = "random";

/// A graph with gradients, and behind them the whole update: finiteness check, clipping, rate,
/// optimizer, copies, average, loss scale, all written to their states. A skipped step changes
/// the loss scale and nothing else. Results: `skipped` (bool), `gradient_norm`, `first_bad`
/// (i64: which gradient, -1), `rate`, and `tally:NAME` for each parameter (i64 2: elements not
/// finite, elements unchanged), and `amax:OPERAND` of each operand that is scaled by its
/// history (f32: its largest magnitude in this step).
Graph with_update(const Graph& graph, const Precision& precision, const Optimizer& optimizer);

/// A graph with gradients, which are added to accumulators instead, as are the largest
/// magnitudes to histories: what one micro-batch does.
Graph with_accumulation(const Graph& graph, const Precision& precision);

/// The update alone, from the accumulators of the parameters in `micro`, a graph
/// with_accumulation() made; it leaves them zero.
Graph update_of(const Graph& micro, const Precision& precision, const Optimizer& optimizer);

/// The graph of an evaluation, made to read the averages of the parameters instead of them; but
/// for those that the patterns in `frozen` name, which do not change and have none.
Graph with_averages(const Graph& graph, std::span<const std::string> frozen = {});

/// The names of the gradients of a graph in the order in which `first_bad` counts them.
std::vector<std::string> gradient_names(const Graph& graph);

/// The state that a parameter's gradients are added up in.
std::string accumulator_name(std::string_view parameter);

}  // namespace halfwatt

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/graph/graph.h"
#include "engine/passes/placement.h"
#include "engine/passes/precision.h"
#include "engine/passes/update.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// What a model is to be made into.
struct Compilation {
  Precision precision;
  std::vector<PrecisionOverride> overrides = {};
  std::optional<Optimizer> optimizer = {};  ///< nullopt: no training
  std::vector<std::string> freeze = {};     ///< patterns of parameters that do not learn
  bool averages = false;  ///< without an optimizer: read the averages that a training keeps
  /// Without an optimizer: weights are loaded and no other session changes them, so they may
  /// lie as the device likes them.
  bool weights_are_fixed = false;
  /// Without an optimizer: of fp8, instead of what each operand says itself.
  std::optional<Fp8Scales> scales = {};
  bool calibrates = false;  ///< without an optimizer: histories of all fp8 operands
  int micro_batches = 1;    ///< of a step
  bool recompute = false;   ///< by block
  std::vector<PlacementRule> place = {};
  std::vector<Target> targets;         ///< one at least
  std::vector<std::string> skip = {};  ///< names of passes
  std::string print_after = {};        ///< name of a pass; empty: none
};

/// What the passes made of a model.
struct Compiled {
  Graph graph;                  ///< a whole step, or what one of several micro-batches does
  std::optional<Graph> update;  ///< of several micro-batches: what follows the last of them
  std::vector<std::string> remarks;
  std::string printed;  ///< the graphs after the pass that was asked for
  struct Pass {
    std::string_view name;
    Seconds took;
    bool skipped = false;
  };
  std::vector<Pass> passes;  ///< in order
};

/// The names of all passes, in order.
std::vector<std::string_view> pass_names();

/// Carries out all passes on `model`, a forward graph in f32, and verifies what each makes.
/// Errors: what a pass refuses; a pass that is not there; a graph that is not legal, with the
/// pass, the node and the rule.
Result<Compiled> compile(const Graph& model, const Compilation& asked);

}  // namespace halfwatt

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/builder.h"

namespace halfwatt {

/// An operand that the products of a graph scale by its history.
struct ScaledOperand {
  std::string scale;        ///< the state; fp8_history_of() it is the other one
  Attributes how;           ///< of op rescale
  std::vector<Value> amax;  ///< of all that is rounded with this scale
};

/// Every such operand, in the order of the graph; a value that several products use is seen
/// once.
std::vector<ScaledOperand> scaled_operands(const Graph& graph);

/// Appends: the operand's history with what this graph saw of it.
Value observed_history(Builder& build, const ScaledOperand& operand);

/// Appends: the operand's next scale and history, from `history`, and writes both. The result
/// `amax:OPERAND` is its amax of this step. Nothing changes where `skip` is true.
void rescale(Builder& build, const ScaledOperand& operand, Value history, Value skip);

/// Appends, where no scale follows from a history: of each operand of fp8 a history one step
/// long, which holds the largest magnitude of all runs.
void observe_all(Graph& graph);

/// Products no longer look for the largest magnitudes of their operands where nobody reads
/// them: an inference, and those of a training that another product has seen.
void drop_unread_magnitudes(Graph& graph);

/// What results are called that rescale() sets.
inline constexpr std::string_view kAmax = "amax:";

}  // namespace halfwatt

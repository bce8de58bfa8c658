#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// Where a value lies while a plan runs.
struct Place {
  enum class Space {
    arena,  ///< of its device, at an offset
    state,  ///< all of a state
    input,  ///< all of an input
  };
  Space space = Space::arena;
  std::size_t offset = 0;  ///< in the arena
  int index = 0;           ///< of the state or the input
  TensorType type;
};

/// Another device's step that one waits for.
struct Wait {
  int device = 0;
  int step = 0;
  bool operator==(const Wait&) const = default;
};

/// One call of a kernel.
struct Step {
  int node = 0;  ///< of the plan's graph
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  Place workspace;  ///< in the arena, u8, as many bytes as the target asked for, perhaps none
  std::vector<Wait> waits;
};

/// What one device does, in order, and the memory it does it in.
struct DevicePlan {
  std::vector<Step> steps;
  std::size_t arena = 0;    ///< bytes
  std::size_t numbers = 0;  ///< bytes at the arena's begin: its small results, which stay there
  std::vector<int> states;  ///< of the graph, that lie on this device
  std::vector<int> inputs;  ///< of Plan::inputs, that are bound on this device
};

/// Results of up to so many bytes come back together with every run.
inline constexpr std::size_t kSmallResult = 64;

struct PlanInput {
  std::string name;
  TensorType type;
  int device = 0;
  /// Its values come while runs before compute: those of a step that changes states, where the
  /// target feeds ahead. It is held twice then.
  bool fed_ahead = false;

  std::size_t bytes() const;
};

struct PlanResult {
  std::string name;
  Place place;
  int device = 0;
};

/// A graph as a fixed list of kernel calls with every byte placed. Pure data.
struct Plan {
  Graph graph;
  std::vector<DevicePlan> devices;
  std::vector<PlanInput> inputs;
  std::vector<PlanResult> results;
};

/// Rounded up to where the next buffer may begin.
std::size_t aligned(std::size_t bytes);

/// The plan of `graph` on `targets`; nodes name theirs by index. Errors: a node that its target
/// refuses, with the reason.
Result<Plan> lower(const Graph& graph, std::span<const Target> targets);

/// Bytes that a plan holds on one device, by what for.
struct Footprint {
  std::size_t parameters = 0;  ///< and their copies
  std::size_t moments = 0;
  std::size_t accumulators = 0;
  std::size_t others = 0;  ///< counters, scaler, averages
  std::size_t arena = 0;   ///< activations, gradients and workspaces
  std::size_t inputs = 0;
  std::size_t largest_workspace = 0;  ///< it is part of the arena

  std::size_t total() const {
    return parameters + moments + accumulators + others + arena + inputs;
  }
};

Footprint footprint(const Plan& plan, int device);
/// Bytes of plans that are bound to the same states and run one at a time, as a session has
/// them: a state once, the inputs of every plan, and the largest arena.
Footprint shared_footprint(std::span<const Plan* const> plans, int device);

}  // namespace halfwatt

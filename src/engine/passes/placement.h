#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// Which nodes go to which device: `blocks.[0-5].*=cpu:0` by layer, `16bit=cpu:1` by the dtype
/// that they compute in.
struct PlacementRule {
  std::string what;           ///< as it was written: a pattern, or the word for the dtypes
  std::vector<DType> dtypes;  ///< empty: `what` is a pattern of layer paths
  std::string target;         ///< by Target::name
};

/// Reads `WHAT=DEVICE,...`, where WHAT is a pattern or one of fp64, fp32, tf32, fp16, bf16, fp8
/// and 16bit. Errors: a part that is not of this form.
Result<std::vector<PlacementRule>> placement_rules(std::string_view text);

/// By parameter: the device on which it is stored and updated.
using Homes = std::map<std::string, int, std::less<>>;

struct Placed {
  Graph graph;
  Homes homes;
  std::vector<std::string> remarks;  ///< nodes that went elsewhere, and why
};

/// A graph split over `targets`. The last rule that matches a node says where it goes, else it
/// goes to the first target; a node that its target refuses goes to the first that does not.
/// Parameters live where they are used first, with their copies, moments and update; what all
/// parameters share (loss scale, norm, rate) is where most of them are. A value goes to another
/// device once, as narrow as it is used there. Errors: a rule that matches nothing, a device
/// that is not there, a node that every target refuses.
Result<Placed> with_placement(const Graph& graph,
                              std::span<const PlacementRule> rules,
                              std::span<const Target> targets);

/// The update of accumulated gradients, placed as the graph that they come from is.
Result<Graph> with_homes(const Graph& update,
                         const Homes& homes,
                         std::span<const Target> targets);

}  // namespace halfwatt

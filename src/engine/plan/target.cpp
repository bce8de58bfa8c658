#include "engine/plan/target.h"

#include <algorithm>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

double flops_per_second(const Target& target, DType dtype) {
  if (const auto found = target.flops.find(dtype); found != target.flops.end()) {
    return found->second;
  }
  double slowest = 0;
  for (const auto& [other, rate] : target.flops) {
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  return slowest;
}

}  // namespace

DType operands_of(const Graph& graph, const Node& node) {
  return node.attributes.has("math_a") ? node.attributes.dtype("math_a")
         : node.inputs.empty()         ? DType::f32
                                       : graph.type(node.inputs[0]).dtype;
}

Seconds predicted_time(const Graph& graph, int node, const Target& target) {
  if (const auto known = target.time ? target.time(graph, node) : std::nullopt) {
    return *known;
  }
  const Cost cost = halfwatt::cost(graph, node);
  const double rate = flops_per_second(target, operands_of(graph, graph.node(node)));
  const Seconds computing(cost.flops > 0 && rate > 0 ? cost.flops / rate : 0);
  if (graph.node(node).op == Op::transfer) {
    const double bytes = static_cast<double>(graph.node(node).outputs[0].bytes());
    return target.latency + Seconds(target.link > 0 ? bytes / target.link : 0);
  }
  if (cost.bytes == 0) {
    return Seconds(0);
  }
  const Seconds moving(target.bytes_per_second > 0 ? cost.bytes / target.bytes_per_second : 0);
  return target.launch + std::max(computing, moving);
}

}  // namespace halfwatt

#include "workloads/op_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

// Where rows are wide; 0, which is unknown to a Target, where no part is that of a unit.
double per_second(const OpRate& rate) {
  return rate.of_unit > Seconds(0) ? 1 / rate.of_unit.value() : 0;
}

}  // namespace

std::string rate_name(const Graph& graph, int node) {
  const Node& it = graph.node(node);
  return fmt::format("{} {}", name_of(it.op), text(operands_of(graph, it)));
}

NodeWork work_of(const Graph& graph, int node) {
  const Cost cost = halfwatt::cost(graph, node);
  const auto& outputs = graph.node(node).outputs;
  const double rows =
      outputs.empty() ? 1
                      : static_cast<double>(std::max<std::int64_t>(1, outputs[0].shape.rows()));
  return {cost.flops > 0 ? cost.flops : cost.bytes, rows};
}

Target with_rates(Target target, const OpRates& rates) {
  std::vector<double> launches;
  for (int id = 0; id < kDTypes; ++id) {
    const auto dtype = static_cast<DType>(id);
    if (const auto found = rates.find(fmt::format("matmul {}", text(dtype)));
        found != rates.end()) {
      target.flops[dtype] = per_second(found->second);
    }
    if (const auto found = rates.find(fmt::format("add {}", text(dtype)));
        found != rates.end()) {
      target.bytes_per_second = std::max(target.bytes_per_second, per_second(found->second));
    }
  }
  for (const auto& [name, rate] : rates) {
    launches.push_back(rate.launch.value());
  }
  if (!launches.empty()) {
    const auto middle = launches.begin() + static_cast<std::ptrdiff_t>(launches.size() / 2);
    std::nth_element(launches.begin(), middle, launches.end());
    target.launch = Seconds(*middle);
  }
  target.time = [rates](const Graph& graph, int node) -> std::optional<Seconds> {
    const auto found = rates.find(rate_name(graph, node));
    if (found == rates.end()) {
      return std::nullopt;
    }
    return found->second.time(work_of(graph, node));
  };
  return target;
}

}  // namespace halfwatt

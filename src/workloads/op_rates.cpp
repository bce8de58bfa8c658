#include "workloads/op_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

// 0, which is unknown to a Target, where no part of the time is that of a unit.
double per_second(Seconds unit) { return unit > Seconds(0) ? 1 / unit.value() : 0; }

// Whether `name` is that of `op` on operands of `dtype`, whatever else goes in and out.
bool is_row_of(std::string_view name, Op op, DType dtype) {
  const std::string begin = fmt::format("{} {}", name_of(op), text(dtype));
  return name.starts_with(begin) && (name.size() == begin.size() || name[begin.size()] == ' ' ||
                                     name[begin.size()] == '>');
}

std::string distinct(const std::vector<TensorType>& types, DType first) {
  std::vector<DType> seen = {first};
  std::string all;
  for (const TensorType& type : types) {
    if (std::find(seen.begin(), seen.end(), type.dtype) == seen.end()) {
      seen.push_back(type.dtype);
      all += fmt::format(" {}", text(type.dtype));
    }
  }
  return all;
}

}  // namespace

std::string rate_name(const Graph& graph, int node) {
  const Node& it = graph.node(node);
  const DType operands = operands_of(graph, it);
  std::string name = fmt::format("{} {}{}", name_of(it.op), text(operands),
                                 distinct(input_types(graph, it), operands));
  if (!it.outputs.empty()) {
    const DType first = it.outputs.front().dtype;
    name += fmt::format(">{}{}", text(first), distinct(it.outputs, first));
  }
  return name;
}

NodeWork work_of(const Graph& graph, int node) {
  const Cost cost = halfwatt::cost(graph, node);
  const auto& outputs = graph.node(node).outputs;
  const double rows =
      outputs.empty() ? 1
                      : static_cast<double>(std::max<std::int64_t>(1, outputs[0].shape.rows()));
  return {cost.flops, cost.bytes, rows};
}

Target with_rates(Target target, const OpRates& rates) {
  if (rates.empty()) {
    return target;
  }
  std::vector<double> launches;
  for (int id = 0; id < kDTypes; ++id) {
    const auto dtype = static_cast<DType>(id);
    for (const auto& [name, rate] : rates) {
      if (is_row_of(name, Op::matmul, dtype) && rate.of_flop > Seconds(0)) {
        target.flops[dtype] = std::max(target.flops[dtype], per_second(rate.of_flop));
      }
      if (is_row_of(name, Op::add, dtype)) {
        target.bytes_per_second = std::max(target.bytes_per_second, per_second(rate.of_byte));
      }
    }
  }
  for (const auto& [name, rate] : rates) {
    launches.push_back(rate.launch.value());
  }
  const auto middle = launches.begin() + static_cast<std::ptrdiff_t>(launches.size() / 2);
  std::nth_element(launches.begin(), middle, launches.end());
  target.launch = Seconds(*middle);
  if (target.link == 0) {
    target.link = target.bytes_per_second;  // to its like in the same memory: a copy
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

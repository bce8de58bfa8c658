#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/exec/cpu_run.h"
#include "engine/exec/op_examples.h"

namespace halfwatt {

// Sums are in fp32: one rounding for each term, of numbers that may be some times as large as
// the sum.
inline double sum_error(const OpExample& example) { return 8 * (example.terms + 1) * 0x1p-24; }

inline std::string name_of(std::string_view what, std::size_t at) {
  return std::string(what) + std::to_string(at);
}

/// The inputs of an example, stored in a format.
inline std::vector<Tensor> stored_inputs(const OpExample& example, DType storage) {
  std::vector<Tensor> all;
  std::uint64_t seed = 31;
  for (const ExampleInput& input : example.inputs) {
    all.push_back(tensor_of(example_type(input, storage), example_values(input, ++seed)));
  }
  return all;
}

/// The node of an example that is computed in `dtype`, on inputs "x0" and so on to results "y0"
/// and so on.
inline Graph example_graph(const OpExample& example, DType dtype) {
  Graph graph;
  Builder build(graph);
  std::vector<Value> values;
  for (std::size_t at = 0; at < example.inputs.size(); ++at) {
    values.push_back(build.input(name_of("x", at), example_type(example.inputs[at], dtype)));
  }
  const Value first = build.add(example.op, values, example.attributes);
  const std::size_t count = graph.node(first.node).outputs.size();
  for (std::size_t at = 0; at < count; ++at) {
    graph.set_result(name_of("y", at), Builder::output(first, static_cast<int>(at)));
  }
  return graph;
}

/// All outputs of it on a device.
inline std::vector<Tensor> example_outputs(std::unique_ptr<Backend> backend,
                                           const OpExample& example,
                                           DType dtype,
                                           const std::vector<Tensor>& inputs) {
  const Graph graph = example_graph(example, dtype);
  const std::size_t count = graph.results().size();
  BackendRun run(std::move(backend), {graph});
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (inputs[at].dtype() == DType::i64) {
      run.session().bind(0, name_of("x", at), inputs[at].view());
    } else {
      run.bind(name_of("x", at), inputs[at]);
    }
  }
  run.run();
  std::vector<Tensor> all;
  for (std::size_t at = 0; at < count; ++at) {
    all.push_back(run.result(name_of("y", at)));
  }
  return all;
}

/// Where `got` is furthest from `wanted`, in units of the largest of `wanted`; without end
/// where a difference is no number.
inline double off(const std::vector<double>& got, const std::vector<double>& wanted) {
  double most = 0;
  double away = 0;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    most = std::max(most, std::abs(wanted[at]));
    const double here = std::abs(got[at] - wanted[at]);
    away = std::isnan(here) ? std::numeric_limits<double>::infinity() : std::max(away, here);
  }
  return most == 0 ? away : away / most;
}

// The format's own rounding, and that it has no smaller numbers.
inline double store_error(DType dtype, const std::vector<double>& wanted) {
  double most = 0;
  for (const double each : wanted) {
    most = std::max(most, std::abs(each));
  }
  return half_ulp(dtype) + (most == 0 ? 0 : facts(dtype).min_subnormal / 2 / most);
}

}  // namespace halfwatt

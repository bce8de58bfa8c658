#include "engine/ops/builder.h"

#include <fmt/format.h>

#include "base/failure.h"

namespace halfwatt {

Value Builder::add(Op op, std::vector<Value> inputs, Attributes attributes) {
  Node node{op, std::move(inputs), std::move(attributes), {}, name_, phase_, device_};
  const OpDef& row = definition(op);
  const std::size_t count = node.inputs.size();
  if (count < row.fewest_inputs || count > row.most_inputs) {
    throw Failure(bad_input(fmt::format("{}: {} inputs, needs {} to {}", row.name, count,
                                        row.fewest_inputs, row.most_inputs)));
  }
  auto outputs = row.outputs(node, input_types(*graph_, node));
  if (!outputs) {
    throw Failure(bad_input(fmt::format("{}{}{}: {}", name_, name_.empty() ? "" : ": ",
                                        row.name, outputs.error().message)));
  }
  node.outputs = std::move(*outputs);
  return {graph_->append(std::move(node)), 0};
}

Value Builder::input(std::string name, TensorType type) {
  return add(Op::input, {},
             {{"input", std::move(name)}, {"dtype", type.dtype}, {"shape", type.shape}});
}

Value Builder::constant(double value, TensorType type) {
  return add(Op::constant, {},
             {{"value", value}, {"dtype", type.dtype}, {"shape", type.shape}});
}

Value Builder::read(const StateSpec& state) {
  graph_->declare(state);
  if (const auto known = graph_->reader(state.name)) {
    return *known;
  }
  return add(Op::read, {},
             {{"state", state.name}, {"dtype", state.type.dtype}, {"shape", state.type.shape}});
}

void Builder::write(const std::string& state, Value value) {
  add(Op::write, {value}, {{"state", state}});
}

Value Builder::cast(Value value, DType dtype) {
  return type(value).dtype == dtype ? value : add(Op::cast, {value}, {{"to", dtype}});
}

Value Builder::linear(Value x, Value weight, std::optional<Value> bias) {
  std::vector<Value> inputs = {x, weight};
  if (bias) {
    inputs.push_back(*bias);
  }
  return add(Op::matmul, std::move(inputs), {{"transpose_b", true}});
}

Value Builder::reshape(Value value, Shape shape) {
  return type(value).shape == shape ? value : add(Op::reshape, {value}, {{"shape", shape}});
}

Value Builder::sum_to(Value value, Shape shape) {
  return type(value).shape == shape ? value : add(Op::sum_to, {value}, {{"shape", shape}});
}

}  // namespace halfwatt

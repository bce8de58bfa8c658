#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// Two tensors, extents of one spread (numpy's rule), in the wider of their dtypes.
Result<Types> add_outputs(const Node&, Inputs inputs) {
  const auto dtype = promoted(inputs[0].dtype, inputs[1].dtype);
  const auto shape = broadcast(inputs[0].shape, inputs[1].shape);
  if (!dtype || !shape) {
    return differ("the terms", inputs[0], inputs[1]);
  }
  return Types{{*dtype, *shape}};
}

InputGradients add_gradient(Builder& build, const GradientCall& call) {
  InputGradients gradients(2);
  for (std::size_t at = 0; at < 2; ++at) {
    if (call.wanted[at]) {
      const TensorType type = build.type(call.node.inputs[at]);
      gradients[at] = build.cast(build.sum_to(*call.of_outputs[0], type.shape), type.dtype);
    }
  }
  return gradients;
}

// Every element times attribute `factor`, or times a second input, a scalar.
Result<Types> scale_outputs(const Node& node, Inputs inputs) {
  if (!is_float(inputs[0].dtype)) {
    return not_floats(inputs);
  }
  if (inputs.size() == 2 ? inputs[1].shape.elements() != 1 : !node.attributes.has("factor")) {
    return bad_input("needs a scalar or the attribute factor");
  }
  return Types{inputs[0]};
}

InputGradients scale_gradient(Builder& build, const GradientCall& call) {
  std::vector<Value> inputs = call.node.inputs;
  inputs[0] = *call.of_outputs[0];
  InputGradients gradients(call.node.inputs.size());
  gradients[0] = build.add(Op::scale, std::move(inputs), call.node.attributes);
  return gradients;
}

// attribute `shape`, which spread to that of the input: sums over what it was spread along.
// Sums are wide, and rounded once.
Result<Types> sum_to_outputs(const Node& node, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  const Shape& to = node.attributes.shape("shape");
  const auto spread = broadcast(to, inputs[0].shape);
  if (!spread || !(*spread == inputs[0].shape)) {
    return bad_input(fmt::format("{} was not spread from {}", text(inputs[0]), text(to)));
  }
  return Types{{inputs[0].dtype, to}};
}

InputGradients sum_to_gradient(Builder& build, const GradientCall& call) {
  return {build.add(Op::expand, {*call.of_outputs[0]},
                    {{"shape", build.type(call.node.inputs[0]).shape}})};
}

// attribute `shape`: what the input is spread to.
Result<Types> expand_outputs(const Node& node, Inputs inputs) {
  const Shape& to = node.attributes.shape("shape");
  const auto spread = broadcast(inputs[0].shape, to);
  if (!spread || !(*spread == to)) {
    return bad_input(fmt::format("{} does not spread to {}", text(inputs[0]), text(to)));
  }
  return Types{{inputs[0].dtype, to}};
}

InputGradients expand_gradient(Builder& build, const GradientCall& call) {
  return {build.sum_to(*call.of_outputs[0], build.type(call.node.inputs[0]).shape)};
}

// attribute `axis`, which is left out.
Result<Types> mean_outputs(const Node& node, Inputs inputs) {
  const Shape& shape = inputs[0].shape;
  const std::size_t axis = axis_of(node);
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (axis >= shape.rank() || shape[axis] == 0) {
    return bad_input(
        fmt::format("axis {} of {}", node.attributes.integer("axis"), text(inputs[0])));
  }
  std::vector<std::int64_t> left(shape.begin(), shape.end());
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(axis));
  return Types{{inputs[0].dtype, Shape(std::span<const std::int64_t>(left))}};
}

InputGradients mean_gradient(Builder& build, const GradientCall& call) {
  const Shape shape = build.type(call.node.inputs[0]).shape;
  const std::size_t axis = axis_of(call.node);
  const Value kept = build.reshape(*call.of_outputs[0], shape.with(axis, 1));
  const Value part =
      build.add(Op::scale, {kept}, {{"factor", 1.0 / static_cast<double>(shape[axis])}});
  return {build.add(Op::expand, {part}, {{"shape", shape}})};
}

}  // namespace

const OpDef kAdd{Op::add, "add",       NumericClass::pointwise, 2, 2, add_outputs, add_gradient,
                 nullptr, InPlace::any};
const OpDef kScale{Op::scale,   "scale",       NumericClass::pointwise, 1,
                   2,           scale_outputs, scale_gradient,          nullptr,
                   InPlace::any};
const OpDef kSumTo{Op::sum_to, "sum_to",       NumericClass::pointwise, 1,
                   1,          sum_to_outputs, sum_to_gradient};
const OpDef kExpand{Op::expand, "expand",       NumericClass::shape, 1,
                    1,          expand_outputs, expand_gradient};
const OpDef kMean{Op::mean, "mean", NumericClass::pointwise, 1, 1, mean_outputs, mean_gradient};

}  // namespace halfwatt

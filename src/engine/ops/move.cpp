#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

Result<Types> reshape_outputs(const Node& node, Inputs inputs) {
  const Shape& to = node.attributes.shape("shape");
  if (to.elements() != inputs[0].shape.elements()) {
    return bad_input(
        fmt::format("{} does not have the elements of {}", text(inputs[0]), text(to)));
  }
  return Types{{inputs[0].dtype, to}};
}

InputGradients reshape_gradient(Builder& build, const GradientCall& call) {
  return {build.reshape(*call.of_outputs[0], build.type(call.node.inputs[0]).shape)};
}

// attributes `axis`, `begin`, `count`.
Result<Types> slice_outputs(const Node& node, Inputs inputs) {
  const Shape& shape = inputs[0].shape;
  const std::size_t axis = axis_of(node);
  const std::int64_t begin = node.attributes.integer("begin");
  const std::int64_t count = node.attributes.integer("count");
  if (axis >= shape.rank() || begin < 0 || count < 0 || begin + count > shape[axis]) {
    return bad_input(fmt::format("{} from {} on axis {} of {}", count, begin,
                                 node.attributes.integer("axis"), text(inputs[0])));
  }
  return Types{{inputs[0].dtype, shape.with(axis, count)}};
}

InputGradients slice_gradient(Builder& build, const GradientCall& call) {
  const std::size_t axis = axis_of(call.node);
  return {build.add(Op::slice_gradient, {*call.of_outputs[0]},
                    {{"axis", static_cast<std::int64_t>(axis)},
                     {"begin", call.node.attributes.integer("begin")},
                     {"extent", build.type(call.node.inputs[0]).shape[axis]}})};
}

// attributes `axis`, `begin` and `extent`: zeros but for the input, from `begin` on.
Result<Types> slice_gradient_outputs(const Node& node, Inputs inputs) {
  const Shape& shape = inputs[0].shape;
  const std::size_t axis = axis_of(node);
  const std::int64_t begin = node.attributes.integer("begin");
  const std::int64_t extent = node.attributes.integer("extent");
  if (axis >= shape.rank() || begin < 0 || begin + shape[axis] > extent) {
    return bad_input(fmt::format("{} from {} on axis {} of an extent of {}", text(inputs[0]),
                                 begin, node.attributes.integer("axis"), extent));
  }
  return Types{{inputs[0].dtype, shape.with(axis, extent)}};
}

// Any number of tensors one after the other along attribute `axis`, in their widest dtype.
Result<Types> concatenate_outputs(const Node& node, Inputs inputs) {
  const std::size_t axis = axis_of(node);
  TensorType all = inputs[0];
  if (axis >= all.shape.rank()) {
    return bad_input(
        fmt::format("axis {} of {}", node.attributes.integer("axis"), text(inputs[0])));
  }
  for (const TensorType& each : inputs.subspan(1)) {
    const auto dtype = promoted(all.dtype, each.dtype);
    if (!dtype || each.shape.rank() != all.shape.rank() ||
        !(each.shape.with(axis, 0) == all.shape.with(axis, 0))) {
      return differ("the parts", all, each);
    }
    all = {*dtype, all.shape.with(axis, all.shape[axis] + each.shape[axis])};
  }
  return Types{all};
}

InputGradients concatenate_gradient(Builder& build, const GradientCall& call) {
  InputGradients gradients(call.node.inputs.size());
  std::int64_t begin = 0;
  for (std::size_t at = 0; at < gradients.size(); ++at) {
    const TensorType type = build.type(call.node.inputs[at]);
    const std::int64_t count = type.shape[axis_of(call.node)];
    if (call.wanted[at]) {
      const Value part = build.add(
          Op::slice, {*call.of_outputs[0]},
          {{"axis", call.node.attributes.integer("axis")}, {"begin", begin}, {"count", count}});
      gradients[at] = build.cast(part, type.dtype);
    }
    begin += count;
  }
  return gradients;
}

// The last two extents the other way round: [..., M, N] to [..., N, M].
Result<Types> transpose_outputs(const Node&, Inputs inputs) {
  const Shape& shape = inputs[0].shape;
  if (shape.rank() < 2) {
    return bad_input(fmt::format("{}, needs a matrix", text(inputs[0])));
  }
  const std::size_t rank = shape.rank();
  return Types{
      {inputs[0].dtype, shape.with(rank - 1, shape.last(1)).with(rank - 2, shape.last(0))}};
}

InputGradients transpose_gradient(Builder& build, const GradientCall& call) {
  return {build.add(Op::transpose, {*call.of_outputs[0]})};
}

InputGradients transfer_gradient(Builder&, const GradientCall& call) {
  return {call.of_outputs[0]};
}

}  // namespace

const OpDef kReshape{Op::reshape, "reshape",       NumericClass::shape, 1,
                     1,           reshape_outputs, reshape_gradient};
const OpDef kSlice{Op::slice, "slice",       NumericClass::shape, 1,
                   1,         slice_outputs, slice_gradient};
const OpDef kSliceGradient{Op::slice_gradient,    "slice_gradient", NumericClass::shape, 1, 1,
                           slice_gradient_outputs};
const OpDef kConcatenate{Op::concatenate, "concatenate",       NumericClass::shape, 1,
                         kAnyNumber,      concatenate_outputs, concatenate_gradient};
const OpDef kTranspose{Op::transpose,     "transpose",       NumericClass::shape, 1, 1,
                       transpose_outputs, transpose_gradient};
// To the node's device from its input's; attribute `from`, put in by placement.
const OpDef kTransfer{Op::transfer, "transfer",       NumericClass::shape, 1, 1,
                      like_first,   transfer_gradient};

}  // namespace halfwatt

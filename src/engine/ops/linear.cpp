#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// inputs: x [..., K], weights [N, K] that lie in panels, maybe a bias [N]. What matmul gives of
// x and the weights transposed; with attribute `gelu` the GELU of it, as it would have been
// stored or as it is before that. attributes `columns` and `steps`: the panels.
Result<Types> outputs(const Node& node, Inputs inputs) {
  const TensorType& x = inputs[0];
  const TensorType& weights = inputs[1];
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (x.dtype != weights.dtype) {
    return differ("dtypes of the operands", x, weights);
  }
  if (x.shape.rank() < 2 || weights.shape.rank() != 2 ||
      x.shape.last(0) != weights.shape.last(0)) {
    return bad_input(
        fmt::format("operands of {} and {}, needs rows of one length", text(x), text(weights)));
  }
  const std::int64_t features = weights.shape[0];
  const std::int64_t columns = node.attributes.integer("columns");
  const std::int64_t steps = node.attributes.integer("steps");
  if (columns < 1 || steps < 1 || features % columns != 0 || weights.shape[1] % steps != 0) {
    return bad_input(
        fmt::format("weights of {} in panels of {}x{}", text(weights), columns, steps));
  }
  if (inputs.size() == 3 && !(inputs[2].shape == Shape{features})) {
    return bad_input(fmt::format("a bias of {}, needs {}", text(inputs[2]), features));
  }
  if (node.attributes.flag("gelu") && inputs.size() != 3) {
    return bad_input("a GELU without a bias");
  }
  return Types{{x.dtype, x.shape.with(x.shape.rank() - 1, features)}};
}

double flops(const Node&, Inputs inputs) {
  return 2.0 * static_cast<double>(inputs[0].shape.elements()) *
         static_cast<double>(inputs[1].shape[0]);
}

}  // namespace

const OpDef kLinear{Op::linear, "linear", NumericClass::gemm, 2, 3, outputs, nullptr, flops};

}  // namespace halfwatt

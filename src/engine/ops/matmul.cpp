#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// inputs: a and b, and a bias: [N].
// a is taken as a matrix of its rows: [..., K], or [K, ...] with `transpose_a`; b: [K, N], or
// [N, K] with `transpose_b`, both taken likewise. The output has a's outer extents where a is
// not transposed. Sums are wide (fp32 of everything narrower). attributes `math_a` and
// `math_b`: what the operands are rounded to first, tf32 or an fp8; to an fp8 with a scale that
// makes the largest element of the operand the largest number of the format, and back.
struct Extents {
  std::int64_t m, k, k_of_b, n;
};

Extents extents(const Node& node, Inputs inputs) {
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  Extents e{a.rows(), a.last(0), b.rows(), b.last(0)};
  if (node.attributes.flag("transpose_a")) {
    std::swap(e.m, e.k);
  }
  if (node.attributes.flag("transpose_b")) {
    std::swap(e.k_of_b, e.n);
  }
  return e;
}

Result<Types> outputs(const Node& node, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (inputs[0].shape.rank() < 2 || inputs[1].shape.rank() < 2) {
    return bad_input(
        fmt::format("operands of {} and {}, needs matrices", text(inputs[0]), text(inputs[1])));
  }
  if (inputs[0].dtype != inputs[1].dtype) {
    return differ("dtypes of the operands", inputs[0], inputs[1]);
  }
  const Extents e = extents(node, inputs);
  if (e.k != e.k_of_b) {
    return bad_input(
        fmt::format("inner dimensions differ ({}x{} . {}x{})", e.m, e.k, e.k_of_b, e.n));
  }
  if (inputs.size() == 3 && !(inputs[2].shape == Shape{e.n})) {
    return bad_input(fmt::format("a bias of {}, needs {}", text(inputs[2]), e.n));
  }
  if (node.attributes.flag("transpose_a")) {
    return Types{{inputs[0].dtype, Shape{e.m, e.n}}};
  }
  const Shape& a = inputs[0].shape;
  return Types{{inputs[0].dtype, a.with(a.rank() - 1, e.n)}};
}

double flops(const Node& node, Inputs inputs) {
  const Extents e = extents(node, inputs);
  return 2.0 * static_cast<double>(e.m) * static_cast<double>(e.k) * static_cast<double>(e.n);
}

// Only of x . w and x . w^T, which is what models are built of.
InputGradients gradient(Builder& build, const GradientCall& call) {
  const Value a = call.node.inputs[0];
  const Value b = call.node.inputs[1];
  const Value dy = *call.of_outputs[0];
  const bool transposed = call.node.attributes.flag("transpose_b");
  const auto math = [&](std::string_view key) {
    const Attributes& attributes = call.node.attributes;
    return attributes.has(key) ? std::optional(attributes.dtype(key)) : std::nullopt;
  };
  // Gradients have the wider range of e5m2 where the operands have e4m3.
  const auto math_dy = math("math_a") == DType::e4m3 ? DType::e5m2 : math("math_a");
  struct Operand {
    Value value;
    bool transpose;
    std::optional<DType> math;
  };
  const auto product = [&](const Operand& one, const Operand& other) {
    Attributes attributes;
    const auto set = [&](std::string_view key, const auto& value) {
      if (value) {
        attributes.set(key, *value);
      }
    };
    set("transpose_a", one.transpose ? std::optional(true) : std::nullopt);
    set("transpose_b", other.transpose ? std::optional(true) : std::nullopt);
    set("math_a", one.math);
    set("math_b", other.math);
    return build.add(Op::matmul, {one.value, other.value}, std::move(attributes));
  };
  InputGradients gradients(call.node.inputs.size());
  if (call.wanted[0]) {
    gradients[0] = product({dy, false, math_dy}, {b, !transposed, math("math_b")});
  }
  if (call.wanted[1]) {
    const Operand gradient_operand{dy, transposed, math_dy};
    const Operand a_operand{a, !transposed, math("math_a")};
    const Value of_b = transposed ? product(gradient_operand, a_operand)
                                  : product(a_operand, gradient_operand);
    gradients[1] = build.reshape(of_b, build.type(b).shape);
  }
  if (call.wanted.size() == 3 && call.wanted[2]) {
    gradients[2] = build.sum_to(dy, build.type(call.node.inputs[2]).shape);
  }
  return gradients;
}

}  // namespace

const OpDef kMatmul{Op::matmul, "matmul", NumericClass::gemm, 2, 3, outputs, gradient, flops};

}  // namespace halfwatt

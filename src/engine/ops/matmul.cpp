#include "engine/ops/matmul.h"

#include "base/check.h"
#include "engine/ops/builder.h"
#include "engine/ops/delayed_scaling.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

const TensorType kScalar{DType::f32, Shape()};

MatmulInputs matmul_inputs(const Attributes& attributes, std::size_t count) {
  const std::size_t scales = attributes.has("scaling") ? 2 : 0;
  MatmulInputs places;
  places.bias = count == 3 + scales ? std::optional<std::size_t>(2) : std::nullopt;
  places.scales = scales > 0 ? std::optional(count - scales) : std::nullopt;
  return places;
}

Result<void> check_scales(const Node& node, Inputs inputs, const MatmulInputs& places) {
  const std::size_t fewest = places.scales ? 4 : 2;
  if (inputs.size() < fewest || inputs.size() > fewest + 1) {
    return bad_input(fmt::format("{} inputs{}, needs {} or {}", inputs.size(),
                                 places.scales ? " with scales" : "", fewest, fewest + 1));
  }
  if (!places.scales) {
    return {};
  }
  for (const TensorType& each : inputs.subspan(*places.scales)) {
    if (!(each == kScalar)) {
      return bad_input(fmt::format("a scale of {}, needs an f32 scalar", text(each)));
    }
  }
  const auto is_fp8 = [&](std::string_view key) {
    return node.attributes.has(key) && bytes_of(node.attributes.dtype(key)) == 1;
  };
  if (inputs[0].dtype == DType::f64 || !is_fp8("math_a") || !is_fp8("math_b")) {
    return bad_input(fmt::format("scales of operands of {}, needs such as are rounded to fp8",
                                 text(inputs[0].dtype)));
  }
  return {};
}

// inputs: a and b, a bias: [N], and with `scaling` a scale of each: f32 scalars.
// a is taken as a matrix of its rows: [..., K], or [K, ...] with `transpose_a`; b: [K, N], or
// [N, K] with `transpose_b`, both taken likewise. The output has a's outer extents where a is
// not transposed. Sums are wide (fp32 of everything narrower). attributes `math_a` and
// `math_b`: what the operands are rounded to first, tf32 or an fp8. To an fp8 they are rounded
// times a scale, what is too large for it becoming its largest number, and divided by it again:
// a scale that makes the largest magnitude of the operand that of the format; with `scaling`
// those of the inputs, and then outputs 1 and 2 are the largest magnitudes of a and b, f32, NaN
// where an element is. `scaling` is the layer's path, from which states are named
// (ops/delayed_scaling.h); `margin` and `algorithm` are of op rescale.
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
  const MatmulExtents e = matmul_extents(node, inputs[0].shape, inputs[1].shape);
  if (e.k != e.k_of_b) {
    return bad_input(
        fmt::format("inner dimensions differ ({}x{} . {}x{})", e.m, e.k, e.k_of_b, e.n));
  }
  const MatmulInputs places = matmul_inputs(node.attributes, inputs.size());
  if (places.bias && !(inputs[*places.bias].shape == Shape{e.n})) {
    return bad_input(fmt::format("a bias of {}, needs {}", text(inputs[*places.bias]), e.n));
  }
  if (const auto fits = check_scales(node, inputs, places); !fits) {
    return fits.error();
  }
  const Shape& a = inputs[0].shape;
  const Shape shape =
      node.attributes.flag("transpose_a") ? Shape{e.m, e.n} : a.with(a.rank() - 1, e.n);
  Types types{{inputs[0].dtype, shape}};
  if (places.scales) {
    types.insert(types.end(), 2, kScalar);
  }
  return types;
}

double flops(const Node& node, Inputs inputs) {
  const MatmulExtents e = matmul_extents(node, inputs[0].shape, inputs[1].shape);
  return 2.0 * static_cast<double>(e.m) * static_cast<double>(e.k) * static_cast<double>(e.n);
}

struct Operand {
  Value value;
  bool transpose;
  std::optional<DType> math;
  std::optional<Value> scale;
};

// A product that belongs to the layer of `call`, and is scaled as its products are.
Value product(Builder& build, const GradientCall& call, const Operand& a, const Operand& b) {
  std::vector<Value> inputs = {a.value, b.value};
  Attributes attributes;
  const auto set = [&](std::string_view key, const auto& value) {
    if (value) {
      attributes.set(key, *value);
    }
  };
  set("transpose_a", a.transpose ? std::optional(true) : std::nullopt);
  set("transpose_b", b.transpose ? std::optional(true) : std::nullopt);
  set("math_a", a.math);
  set("math_b", b.math);
  if (a.scale && b.scale) {
    inputs.insert(inputs.end(), {*a.scale, *b.scale});
    for (const auto& [key, value] : call.node.attributes.entries()) {
      if (key == "scaling" || key == "margin" || key == "algorithm") {
        attributes.set(key, value);
      }
    }
  }
  return build.add(Op::matmul, std::move(inputs), std::move(attributes));
}

// The operands of a product, and the gradient of its output as one.
struct Operands {
  Operand a, b, dy;
};

Operands operands(Builder& build, const GradientCall& call) {
  const Attributes& attributes = call.node.attributes;
  const auto math = [&](std::string_view key) {
    return attributes.has(key) ? std::optional(attributes.dtype(key)) : std::nullopt;
  };
  Operands all{{call.node.inputs[0], false, math("math_a"), {}},
               {call.node.inputs[1], false, math("math_b"), {}},
               {*call.of_outputs[0], false, math("math_a"), {}}};
  // Gradients have the wider range of e5m2 where the operands have e4m3.
  if (all.dy.math == DType::e4m3) {
    all.dy.math = DType::e5m2;
  }
  if (const auto scales = matmul_inputs(call.node).scales) {
    all.a.scale = call.node.inputs[*scales];
    all.b.scale = call.node.inputs[*scales + 1];
    const std::string name = fp8_scale_name(attributes.word("scaling"), Fp8Operand::gradient);
    const StateSpec* state = build.graph().state(name);
    HALFWATT_CHECK(state, "a layer with scales has one of its gradient declared");
    all.dy.scale = build.read(StateSpec(*state));
  }
  return all;
}

// Only of x . w and x . w^T, which is what models are built of.
InputGradients gradient(Builder& build, const GradientCall& call) {
  const bool transposed = call.node.attributes.flag("transpose_b");
  const auto bias = matmul_inputs(call.node).bias;
  const auto [a, b, dy] = operands(build, call);
  const auto turned = [](Operand operand, bool transpose) {
    operand.transpose = transpose;
    return operand;
  };
  InputGradients gradients(call.node.inputs.size());
  // The weights' first: x is not needed after it, and x's gradient may lie where x did.
  if (call.wanted[1]) {
    const Operand x = turned(a, !transposed);
    const Operand of_y = turned(dy, transposed);
    const Value of_b =
        transposed ? product(build, call, of_y, x) : product(build, call, x, of_y);
    gradients[1] = build.reshape(of_b, build.type(b.value).shape);
  }
  if (call.wanted[0]) {
    gradients[0] = product(build, call, dy, turned(b, !transposed));
  }
  if (bias && call.wanted[*bias]) {
    gradients[*bias] = build.sum_to(dy.value, build.type(call.node.inputs[*bias]).shape);
  }
  return gradients;
}

}  // namespace

MatmulInputs matmul_inputs(const Node& matmul) {
  return matmul_inputs(matmul.attributes, matmul.inputs.size());
}

MatmulExtents matmul_extents(const Node& matmul, const Shape& a, const Shape& b) {
  MatmulExtents e{a.rows(), a.last(0), b.rows(), b.last(0)};
  if (matmul.attributes.flag("transpose_a")) {
    std::swap(e.m, e.k);
  }
  if (matmul.attributes.flag("transpose_b")) {
    std::swap(e.k_of_b, e.n);
  }
  return e;
}

const OpDef kMatmul{Op::matmul, "matmul", NumericClass::gemm, 2, 5, outputs, gradient, flops};

}  // namespace halfwatt

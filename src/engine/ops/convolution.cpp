#include <array>

#include "engine/ops/builder.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// Images NxCxHxW and weights OxCxRxS, as PyTorch has them, and a bias: [O]; to NxOxPxQ, where
// P = (H + 2 padding - R) / stride + 1, rounded down, and Q likewise. attributes `stride` and
// `padding`, by zeros, of both sides alike. Sums are wide. attributes `math_a` and `math_b`:
// what images and weights are rounded to first, as in matmul.
//
// Its gradients are ops of their own, with the same attributes and `shape`, that of what they
// give, which the input of the other kind does not tell.

Error bad_geometry(const Shape& images, const Shape& weights, const Node& node) {
  return bad_input(
      fmt::format("a kernel of {}x{} with stride {} and padding {} on {}x{}; needs "
                  "a stride of at least 1, a padding below the kernel, and the "
                  "kernel to fit",
                  weights[2], weights[3], node.attributes.integer("stride"),
                  node.attributes.integer("padding"), images[2], images[3]));
}

// The shape of what comes out of images and weights of these shapes.
Result<Shape> convolved(const Shape& images, const Shape& weights, const Node& node) {
  if (images.rank() != 4 || weights.rank() != 4) {
    return bad_input(fmt::format("images of {} and weights of {}, needs NxCxHxW and OxCxRxS",
                                 text(images), text(weights)));
  }
  if (images[1] != weights[1]) {
    return bad_input(fmt::format("images of {} channels, weights of {} ({} and {})", images[1],
                                 weights[1], text(images), text(weights)));
  }
  const std::int64_t stride = node.attributes.integer("stride");
  const std::int64_t padding = node.attributes.integer("padding");
  std::array<std::int64_t, 2> extents{};
  for (const std::size_t side : {0U, 1U}) {
    const std::int64_t image = images[2 + side];
    const std::int64_t kernel = weights[2 + side];
    if (stride < 1 || padding < 0 || padding >= kernel || image + 2 * padding < kernel) {
      return bad_geometry(images, weights, node);
    }
    extents[side] = (image + 2 * padding - kernel) / stride + 1;
  }
  return Shape{images[0], weights[0], extents[0], extents[1]};
}

Result<Types> outputs(const Node& node, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (inputs[0].dtype != inputs[1].dtype) {
    return differ("dtypes of images and weights", inputs[0], inputs[1]);
  }
  const auto shape = convolved(inputs[0].shape, inputs[1].shape, node);
  if (!shape) {
    return shape.error();
  }
  if (inputs.size() == 3 && !(inputs[2].shape == Shape{(*shape)[1]})) {
    return bad_input(fmt::format("a bias of {}, needs {}", text(inputs[2]), (*shape)[1]));
  }
  return Types{{inputs[0].dtype, *shape}};
}

// A gradient of what comes out, which has to be of the shape that images and weights make.
Result<void> fits(const Node& node, Inputs inputs, const Shape& images, const Shape& weights) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  if (inputs[0].dtype != inputs[1].dtype) {
    return differ("dtypes of the operands", inputs[0], inputs[1]);
  }
  const auto shape = convolved(images, weights, node);
  if (!shape) {
    return shape.error();
  }
  if (!(inputs[0].shape == *shape)) {
    return bad_input(
        fmt::format("a gradient of {}, needs {}", text(inputs[0].shape), text(*shape)));
  }
  return {};
}

// dy: NxOxPxQ, weights: OxCxRxS; attribute `shape`, that of the images.
Result<Types> of_images(const Node& node, Inputs inputs) {
  const Shape& images = node.attributes.shape("shape");
  if (const auto fitting = fits(node, inputs, images, inputs[1].shape); !fitting) {
    return fitting.error();
  }
  return Types{{inputs[0].dtype, images}};
}

// dy: NxOxPxQ, images: NxCxHxW; attribute `shape`, that of the weights. The second output is
// the gradient of a bias, if there is the flag `bias`.
Result<Types> of_weights(const Node& node, Inputs inputs) {
  const Shape& weights = node.attributes.shape("shape");
  if (const auto fitting = fits(node, inputs, inputs[1].shape, weights); !fitting) {
    return fitting.error();
  }
  Types types{{inputs[0].dtype, weights}};
  if (node.attributes.flag("bias")) {
    types.push_back({inputs[0].dtype, Shape{weights[0]}});
  }
  return types;
}

double macs(const Shape& outputs, const Shape& weights) {
  return static_cast<double>(outputs.elements()) *
         static_cast<double>(weights[1] * weights[2] * weights[3]);
}

double flops(const Node& node, Inputs inputs) {
  return 2 * macs(convolved(inputs[0].shape, inputs[1].shape, node).value(), inputs[1].shape);
}

double flops_of_images(const Node&, Inputs inputs) {
  return 2 * macs(inputs[0].shape, inputs[1].shape);
}

double flops_of_weights(const Node& node, Inputs inputs) {
  return 2 * macs(inputs[0].shape, node.attributes.shape("shape"));
}

InputGradients gradient(Builder& build, const GradientCall& call) {
  const Value images = call.node.inputs[0];
  const Value weights = call.node.inputs[1];
  const Value dy = *call.of_outputs[0];
  const auto add = [&](Op op, Value other, std::string_view math, const Shape& shape) {
    const Attributes& from = call.node.attributes;
    Attributes attributes = {{"stride", from.integer("stride")},
                             {"padding", from.integer("padding")},
                             {"shape", shape}};
    if (from.has("math_a")) {
      attributes.set("math_a", from.dtype("math_a"));
      attributes.set("math_b", from.dtype(math));
    }
    if (op == Op::convolution_weight_gradient && call.wanted.size() == 3) {
      attributes.set("bias", true);
    }
    return build.add(op, {dy, other}, std::move(attributes));
  };
  InputGradients gradients(call.node.inputs.size());
  if (call.wanted[0]) {
    gradients[0] =
        add(Op::convolution_input_gradient, weights, "math_b", build.type(images).shape);
  }
  const bool has_bias = call.wanted.size() == 3;
  if (call.wanted[1] || (has_bias && call.wanted[2])) {
    const Value of_weights =
        add(Op::convolution_weight_gradient, images, "math_a", build.type(weights).shape);
    gradients[1] = of_weights;
    if (has_bias) {
      gradients[2] = Builder::output(of_weights, 1);
    }
  }
  return gradients;
}

}  // namespace

const OpDef kConvolution{Op::convolution, "convolution", NumericClass::gemm, 2, 3, outputs,
                         gradient,        flops};
const OpDef kConvolutionInputGradient{Op::convolution_input_gradient,
                                      "convolution_input_gradient",
                                      NumericClass::gemm,
                                      2,
                                      2,
                                      of_images,
                                      nullptr,
                                      flops_of_images};
const OpDef kConvolutionWeightGradient{Op::convolution_weight_gradient,
                                       "convolution_weight_gradient",
                                       NumericClass::gemm,
                                       2,
                                       2,
                                       of_weights,
                                       nullptr,
                                       flops_of_weights};

}  // namespace halfwatt

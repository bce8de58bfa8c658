#include <gtest/gtest.h>

#include "engine/ops/made_up_types.h"

namespace halfwatt {
namespace {

TEST(Types, that_do_not_fit_a_product_are_refused) {
  expect_refused({
      {Op::matmul,
       {i64(Shape{2, 3}), i64(Shape{3, 4})},
       {},
       "an input of i64 2x3, needs floats"},
      {Op::matmul,
       {f32(Shape{3}), f32(Shape{3, 4})},
       {},
       "operands of f32 3 and f32 3x4, needs matrices"},
      {Op::matmul,
       {f32(Shape{2, 3}), f16(Shape{3, 4})},
       {},
       "dtypes of the operands differ (f32 2x3 and f16 3x4)"},
      {Op::matmul,
       {f32(Shape{128, 768}), f32(Shape{512, 64})},
       {},
       "inner dimensions differ (128x768 . 512x64)"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4})},
       {{"transpose_b", true}},
       "inner dimensions differ (2x3 . 4x3)"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4}), f32(Shape{3})},
       {},
       "a bias of f32 3, needs 4"},
      {Op::attention, {i64(Shape{2, 5, 24})}, heads(4), "an input of i64 2x5x24, needs floats"},
      {Op::attention,
       {f32(Shape{2, 5, 24})},
       heads(5),
       "qkv of f32 2x5x24, needs BxNx3D with D a multiple of 5 heads"},
      {Op::attention,
       {f32(Shape{5, 24})},
       heads(4),
       "qkv of f32 5x24, needs BxNx3D with D a multiple of 4 heads"},
      {Op::attention_gradient,
       {f32(Shape{2, 5, 4}), f32(Shape{2, 5, 24}), f32(Shape{2, 5, 8}), f32(Shape{2, 4, 5})},
       heads(4),
       "the output and its gradient differ (f32 2x5x8 and f32 2x5x4)"},
      {Op::attention_gradient,
       {f32(Shape{2, 5, 8}), f32(Shape{2, 5, 24}), f32(Shape{2, 5, 8}), f32(Shape{2, 5, 4})},
       heads(4),
       "an output and logarithms of f32 2x5x8 and f32 2x5x4, needs f32 2x5x8 and f32 2x4x5"},
  });
}

TEST(Types, that_do_not_fit_the_scales_or_sums_of_a_product_are_refused) {
  expect_refused({
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4}), f32(Shape{4}), kScalar, kScalar},
       {},
       "5 inputs, needs 2 or 3"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4})},
       scaled(DType::e4m3),
       "2 inputs with scales, needs 4 or 5"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4}), kScalar, f32(Shape{4})},
       scaled(DType::e4m3),
       "a scale of f32 4, needs an f32 scalar"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4}), kScalar, kScalar},
       scaled(DType::tf32),
       "scales of operands of f32, needs such as are rounded to fp8"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4})},
       observed({}),
       "scales of operands of f32, needs such as are rounded to fp8"},
      {Op::matmul,
       {f32(Shape{2, 3}), f32(Shape{3, 4})},
       {{"accumulate", DType::f16}},
       "sums of f16 of operands of f32, needs f16"},
  });
}

TEST(Types, that_do_not_fit_a_norm_are_refused) {
  const TensorType x = f32(Shape{5, 8});
  const TensorType weight = f32(Shape{8});
  expect_refused({
      {Op::layer_norm, {x, i64(Shape{8}), weight}, {}, "an input of i64 8, needs floats"},
      {Op::layer_norm, {x, weight, f32(Shape{5})}, {}, "a weight of f32 5, needs 8"},
      {Op::layer_norm_gradient,
       {x, f16(Shape{5, 8}), f16(Shape{8}), f32(Shape{5}), f32(Shape{5})},
       {},
       "the input and the gradient of the output differ (f16 5x8 and f32 5x8)"},
      {Op::layer_norm_gradient,
       {x, x, f32(Shape{5}), f32(Shape{5}), f32(Shape{5})},
       {},
       "a weight of f32 5, needs 8"},
      {Op::layer_norm_gradient,
       {x, x, weight, f32(Shape{5}), f32(Shape{8})},
       {},
       "statistics of f32 5 and f32 8, needs f32 5"},
      {Op::add_layer_norm,
       {x, f32(Shape{8}), weight, weight},
       {},
       "the terms differ (f32 5x8 and f32 8)"},
      {Op::add_layer_norm, {x, x, weight, f32(Shape{5})}, {}, "a weight of f32 5, needs 8"},
  });
}

TEST(Types, that_do_not_fit_a_linear_layer_are_refused) {
  const auto panels = [](std::int64_t columns, std::int64_t steps, bool gelu = false) {
    Attributes all{{"columns", columns}, {"steps", steps}};
    if (gelu) {
      all.set("gelu", true);
    }
    return all;
  };
  const TensorType x = f32(Shape{5, 8});
  const TensorType weights = f32(Shape{6, 8});
  expect_refused({
      {Op::linear,
       {x, f16(Shape{6, 8})},
       panels(3, 1),
       "dtypes of the operands differ (f32 5x8 and f16 6x8)"},
      {Op::linear,
       {x, f32(Shape{8, 6})},
       panels(4, 1),
       "operands of f32 5x8 and f32 8x6, needs rows of one length"},
      {Op::linear, {x, weights}, panels(4, 1), "weights of f32 6x8 in panels of 4x1"},
      {Op::linear, {x, weights}, panels(3, 3), "weights of f32 6x8 in panels of 3x3"},
      {Op::linear, {x, weights, f32(Shape{8})}, panels(3, 1), "a bias of f32 8, needs 6"},
      {Op::linear, {x, weights}, panels(3, 1, true), "a GELU without a bias"},
  });
}

TEST(Types, that_do_not_fit_a_loss_are_refused) {
  const TensorType logits = f32(Shape{5, 8});
  const TensorType labels = i64(Shape{5});
  expect_refused({
      {Op::cross_entropy,
       {i64(Shape{5, 8}), labels, kCount},
       {},
       "logits of i64 5x8, needs floats of samples by classes"},
      {Op::cross_entropy,
       {f32(Shape{5}), labels, kCount},
       {},
       "logits of f32 5, needs floats of samples by classes"},
      {Op::cross_entropy, {logits, f32(Shape{5}), kCount}, {}, "labels of f32 5, needs i64 5"},
      {Op::cross_entropy,
       {logits, labels, f32(Shape())},
       {},
       "a count of valid samples of f32 scalar, needs an i64"},
      {Op::binary_cross_entropy,
       {logits, labels, kCount},
       {},
       "labels of i64 5, needs f32 5x8"},
      {Op::cross_entropy_gradient,
       {f32(Shape{5}), logits, labels, kCount},
       {},
       "a gradient of f32 5, needs a scalar"},
      {Op::cross_entropy_gradient,
       {kScalar, logits, i64(Shape{8}), kCount},
       {},
       "labels of i64 8, needs i64 5"},
      {Op::binary_cross_entropy_gradient,
       {kScalar, logits, labels, kCount},
       {},
       "labels of i64 5, needs f32 5x8"},
  });
}

TEST(Types, that_do_not_fit_an_op_of_elements_are_refused) {
  const TensorType x = f32(Shape{2, 3});
  const TensorType grey = u8(Shape{1, 1, 2, 2});
  expect_refused({
      {Op::cast, {i64(Shape{2})}, {{"to", DType::f32}}, "from i64 to f32, needs floats"},
      {Op::cast, {x}, {{"to", DType::i8}}, "from f32 to i8, needs floats"},
      {Op::normalise, {x}, normal({0}, {1}), "pictures of f32 2x3, needs u8 NxCxHxW"},
      {Op::normalise, {u8(Shape{3})}, normal({0}, {1}), "pictures of u8 3, needs u8 NxCxHxW"},
      {Op::normalise,
       {grey},
       normal({0, 0}, {1}),
       "2 means and 1 deviations of u8 1x1x2x2, needs one of each channel"},
      {Op::normalise, {grey}, normal({0}, {0}), "a deviation of 0, needs more than 0"},
      {Op::add, {x, f32(Shape{2})}, {}, "the terms differ (f32 2x3 and f32 2)"},
      {Op::add, {x, i64(Shape{2, 3})}, {}, "the terms differ (f32 2x3 and i64 2x3)"},
      {Op::scale, {x}, {}, "needs a scalar or the attribute factor"},
      {Op::scale, {x, x}, {{"factor", 2.0}}, "needs a scalar or the attribute factor"},
      {Op::scale, {i64(Shape{2})}, {{"factor", 2.0}}, "an input of i64 2, needs floats"},
      {Op::gelu, {i64(Shape{2})}, {}, "an input of i64 2, needs floats"},
      {Op::gelu_gradient,
       {x, f32(Shape{6})},
       {},
       "the input and the gradient of the output differ (f32 6 and f32 2x3)"},
      {Op::gelu_gradient, {kKey, kKey}, {}, "an input of i64 3, needs floats"},
      {Op::dropout, {kScalar, kKey}, rate(0.1), "f32 scalar, needs floats of samples"},
      {Op::dropout, {x, f32(Shape{3})}, rate(0.1), "a random key of f32 3, needs i64 3"},
      {Op::dropout, {x, kKey}, rate(1), "a rate of 1, needs 0 to below 1"},
      {Op::drop_path, {x, kKey}, rate(-0.5), "a rate of -0.5, needs 0 to below 1"},
      {Op::mean, {x}, axis(2), "axis 2 of f32 2x3"},
      {Op::mean, {x}, axis(-1), "axis -1 of f32 2x3"},
      {Op::mean, {f32(Shape{0, 3})}, axis(0), "axis 0 of f32 0x3"},
      {Op::mean, {kKey}, axis(0), "an input of i64 3, needs floats"},
      {Op::sum_to, {x}, shape(Shape{2}), "f32 2x3 was not spread from 2"},
      {Op::sum_to, {x}, shape(Shape{4, 2, 3}), "f32 2x3 was not spread from 4x2x3"},
      {Op::sum_to, {kKey}, shape(Shape{}), "an input of i64 3, needs floats"},
  });
}

TEST(Types, that_do_not_fit_a_move_are_refused) {
  const TensorType x = f32(Shape{2, 7});
  expect_refused({
      {Op::reshape, {x}, shape(Shape{13}), "f32 2x7 does not have the elements of 13"},
      {Op::expand, {x}, shape(Shape{7}), "f32 2x7 does not spread to 7"},
      {Op::slice, {x}, range("count", 1, 3, 5), "5 from 3 on axis 1 of f32 2x7"},
      {Op::slice, {x}, range("count", 2, 0, 1), "1 from 0 on axis 2 of f32 2x7"},
      {Op::slice, {x}, range("count", -1, 0, 1), "1 from 0 on axis -1 of f32 2x7"},
      {Op::slice, {x}, range("count", 1, -1, 1), "1 from -1 on axis 1 of f32 2x7"},
      {Op::slice_gradient,
       {x},
       range("extent", 1, 1, 7),
       "f32 2x7 from 1 on axis 1 of an extent of 7"},
      {Op::slice_gradient,
       {x},
       range("extent", 2, 0, 7),
       "f32 2x7 from 0 on axis 2 of an extent of 7"},
      {Op::concatenate,
       {x, f32(Shape{3, 7})},
       axis(1),
       "the parts differ (f32 2x7 and f32 3x7)"},
      {Op::concatenate, {x, f32(Shape{7})}, axis(0), "the parts differ (f32 2x7 and f32 7)"},
      {Op::concatenate,
       {x, i64(Shape{2, 7})},
       axis(0),
       "the parts differ (f32 2x7 and i64 2x7)"},
      {Op::concatenate, {x}, axis(2), "axis 2 of f32 2x7"},
      {Op::transpose, {f32(Shape{7})}, {}, "f32 7, needs a matrix"},
  });
}

TEST(Types, that_do_not_fit_a_convolution_are_refused) {
  const TensorType images = f32(Shape{2, 3, 8, 6});
  const TensorType weights = f32(Shape{5, 3, 4, 4});
  const auto geometry = [](const std::string& found) {
    return "a kernel of 4x4 with " + found +
           "; needs a stride of at least 1, a padding below the kernel, and the kernel to fit";
  };
  expect_refused({
      {Op::convolution,
       {f32(Shape{2, 7}), weights},
       strided(1, 0),
       "images of 2x7 and weights of 5x3x4x4, needs NxCxHxW and OxCxRxS"},
      {Op::convolution,
       {images, f32(Shape{5, 4, 4, 4})},
       strided(1, 0),
       "images of 3 channels, weights of 4 (2x3x8x6 and 5x4x4x4)"},
      {Op::convolution,
       {images, f16(Shape{5, 3, 4, 4})},
       strided(1, 0),
       "dtypes of images and weights differ (f32 2x3x8x6 and f16 5x3x4x4)"},
      {Op::convolution,
       {i64(Shape{2, 3, 8, 6}), weights},
       strided(1, 0),
       "an input of i64 2x3x8x6, needs floats"},
      {Op::convolution,
       {images, weights, f32(Shape{4})},
       strided(1, 0),
       "a bias of f32 4, needs 5"},
      {Op::convolution,
       {images, weights},
       strided(0, 0),
       geometry("stride 0 and padding 0 on 8x6")},
      {Op::convolution,
       {images, weights},
       strided(1, 4),
       geometry("stride 1 and padding 4 on 8x6")},
      {Op::convolution,
       {f32(Shape{2, 3, 8, 1}), weights},
       strided(1, 1),
       geometry("stride 1 and padding 1 on 8x1")},
      {Op::convolution_input_gradient,
       {f32(Shape{2, 5, 5, 4}), weights},
       strided(1, 0, images.shape),
       "a gradient of 2x5x5x4, needs 2x5x5x3"},
      {Op::convolution_weight_gradient,
       {f32(Shape{3, 5, 5, 3}), images},
       strided(1, 0, weights.shape),
       "a gradient of 3x5x5x3, needs 2x5x5x3"},
  });
}

TEST(Types, that_do_not_fit_the_update_are_refused) {
  const TensorType w = f32(Shape{2});
  const std::string counters = ", needs an i64 and a bool";
  const std::string differ = "the parameter and its gradient or moment differ (f32 2 and ";
  expect_refused({
      {Op::check_gradients, {w, kKey}, {}, "an input of i64 3, needs floats"},
      {Op::gradient_factor, {w, kScalar}, {}, "a norm or scale of f32 2, needs a scalar"},
      {Op::gradient_factor, {kScalar, w}, {}, "a norm or scale of f32 2, needs a scalar"},
      {Op::learning_rate, {kScalar}, {}, "a counter of f32 scalar, needs an i64"},
      {Op::adamw,
       {w, w, f32(Shape{3}), w, kScalar, kScalar, kCount, kFlag},
       {},
       differ + "f32 3)"},
      {Op::adamw, {w, w, w, kTally, kScalar, kScalar, kCount, kFlag}, {}, differ + "i64 2)"},
      {Op::adamw,
       {w, w, w, w, kScalar, w, kCount, kFlag},
       {},
       "a factor or rate of f32 2, needs a scalar"},
      {Op::adamw,
       {w, w, w, w, kScalar, kScalar, kAge, kFlag},
       {},
       "a counter and a flag of i32 scalar and bool scalar" + counters},
      {Op::sgd,
       {w, w, w, kScalar, kScalar, kCount, kCount},
       {},
       "a counter and a flag of i64 scalar and i64 scalar" + counters},
      {Op::sgd, {w, f32(Shape{1}), w, kScalar, kScalar, kCount, kFlag}, {}, differ + "f32 1)"},
      {Op::sgd,
       {w, w, w, w, f16(Shape{2}), w, kScalar, kScalar, kCount, kFlag},
       {},
       "parameters of one update differ (f32 2 and f16 2)"},
      {Op::sgd,
       {w, w, w, w, w, w, kScalar, kScalar, kCount, kFlag, kKey},
       {},
       "11 inputs, needs 3 for each parameter and 4"},
      {Op::adamw,
       {w, w, w, w, w, w, kScalar, kScalar, kCount, kFlag},
       {},
       "10 inputs, needs 4 for each parameter and 4"},
      {Op::ema,
       {w, kScalar, kFlag},
       {},
       "the average and its parameter differ (f32 2 and f32 scalar)"},
      {Op::ema, {w, kTally, kFlag}, {}, "an input of i64 2, needs floats"},
      {Op::ema, {w, w, kCount}, {}, "a flag of i64 scalar, needs a bool"},
      {Op::advance,
       {kAge, kFlag},
       {},
       "a counter and a flag of i32 scalar and bool scalar" + counters},
  });
}

TEST(Types, that_do_not_fit_a_scale_are_refused) {
  const TensorType w = f32(Shape{2});
  expect_refused({
      {Op::update_scale, {w, kAge, kFlag}, {}, "a scale of f32 2, needs a scalar"},
      {Op::update_scale,
       {kScalar, kCount, kFlag},
       {},
       "an age and a flag of i64 scalar and bool scalar, needs an i32 and a bool"},
      {Op::observe_amax,
       {f32(Shape{2, 2}), kScalar},
       {},
       "a history of f32 2x2, needs an f32 vector"},
      {Op::observe_amax, {w, w}, {}, "an amax of f32 2, needs an f32 scalar"},
      {Op::rescale,
       {w, kScalar, kScalar},
       {},
       "a scale and a flag of f32 scalar and f32 scalar, needs an f32 and a bool"},
  });
}

}  // namespace
}  // namespace halfwatt

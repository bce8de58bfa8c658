#include <cmath>

#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/kernels/attention.h"
#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/moves.h"
#include "engine/backend/cuda/kernels/patches.h"
#include "engine/backend/cuda/kernels/quantise.h"
#include "engine/backend/cuda/kernels/rows.h"
#include "engine/backend/cuda/planted.h"
#include "engine/ops/matmul.h"

namespace halfwatt::cuda {
namespace {

// Of f32 alone: narrower numbers are numbers of tf32 as they are.
bool is_tf32(const Call& call) {
  return call.attributes().has("math_a") && call.attributes().dtype("math_a") == DType::tf32 &&
         call.input(0).type.dtype == DType::f32;
}
bool is_fp8_product(const Call& call) {
  return call.attributes().has("math_a") && bytes_of(call.attributes().dtype("math_a")) == 1;
}

// Products add a bias of the result's dtype; of another one it is added to sums in fp32.
class Product {
 public:
  Product(Call& call, const ProductShape& shape, const Elements& bias)
      : call_(&call),
        shape_(shape),
        adds_later_(shape.has_bias && (bias.dtype != shape.result || is_fp32_of_fp8(shape))) {
    if (adds_later_) {
      shape_.has_bias = false;
      shape_.result = DType::f32;
      sums_ = call.scratch(DType::f32, shape.m * shape.n);
    }
    workspace_ = aligned_workspace(call.scratch(Products::kWorkspace + kAlignmentOfIt));
    if (call.prepares() && shape.m * shape.n * shape.k > 0) {
      call.products().prepare(shape_);
    }
  }

  /// Scales are those of operands of fp8.
  void run(const std::byte* a,
           const std::byte* b,
           const Elements& bias,
           Elements c,
           const float* a_scale = nullptr,
           const float* b_scale = nullptr) const {
    const Index count = shape_.m * shape_.n;
    if (count == 0) {
      return;
    }
    if (shape_.k == 0) {  // a sum of nothing
      fill(call_->stream(), c, 0, count);
      if (bias) {
        add(call_->stream(), c, bias, c, count, shape_.n);
      }
      return;
    }
    std::byte* const to = adds_later_ ? sums_.data : c.data;
    call_->products().run(call_->stream(), shape_,
                          {a, b, bias.data, to, workspace_, a_scale, b_scale});
    if (adds_later_) {
      add(call_->stream(), sums_, bias, c, count, shape_.n);
    }
  }

 private:
  // cuBLASLt has no bias for it.
  static bool is_fp32_of_fp8(const ProductShape& shape) {
    return bytes_of(shape.a) == 1 && shape.result == DType::f32;
  }
  static constexpr std::size_t kAlignmentOfIt = 256;
  static std::byte* aligned_workspace(std::byte* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return memory + (kAlignmentOfIt - address % kAlignmentOfIt) % kAlignmentOfIt;
  }

  Call* call_;
  ProductShape shape_;
  bool adds_later_;
  Elements sums_;
  std::byte* workspace_ = nullptr;
};

ConvolutionShape convolution_shape(const Call& call,
                                   const Shape& images,
                                   const Shape& weights,
                                   const Shape& outputs) {
  return {images[0],
          images[1],
          images[2],
          images[3],
          weights[0],
          weights[2],
          weights[3],
          call.attributes().integer("stride"),
          call.attributes().integer("padding"),
          outputs[2],
          outputs[3]};
}

/// dy [images, outputs, positions] as rows of outputs.
void transpose_outputs(const Call& call,
                       const ConvolutionShape& shape,
                       const Elements& from,
                       const Elements& to) {
  transpose(call.stream(), from.data, to.data, shape.images, shape.outputs, shape.positions(),
            bytes_of(from.dtype));
}

AttentionShape attention_shape(const Call& call, const Shape& qkv) {
  const Index heads = call.attributes().integer("heads");
  return {qkv[0], qkv[1], heads, qkv[2] / 3 / heads};
}

float score_scale(const AttentionShape& shape) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(shape.width)));
}

ProductShape matmul_shape(const Call& call) {
  const MatmulExtents extents =
      matmul_extents(call.node(), call.input(0).type.shape, call.input(1).type.shape);
  ProductShape shape;
  shape.m = extents.m;
  shape.n = extents.n;
  shape.k = extents.k - planted(Fault::lost_term);
  shape.a_transposed = call.attributes().flag("transpose_a");
  shape.b_transposed = call.attributes().flag("transpose_b");
  shape.a = shape.b = call.input(0).type.dtype;
  shape.result = call.output(0).type.dtype;
  return shape;
}

/// One operand of a product of fp8, in the workspace of its call: [outer, inner], both rounded
/// up to what such products take.
class RoundedOperand {
 public:
  RoundedOperand(
      Call& call, std::size_t at, DType format, bool transposed, Index outer, Index inner)
      : call_(&call),
        at_(at),
        format_(format),
        transposed_(transposed),
        outer_(padded(outer)),
        inner_(padded(inner)),
        codes_(call.scratch(static_cast<std::size_t>(outer_ * inner_))),
        numbers_(reinterpret_cast<float*>(call.scratch(kNumbers * sizeof(float)))) {}

  static Index padded(Index extent) {
    return (extent + kFp8Multiple - 1) / kFp8Multiple * kFp8Multiple;
  }

  const std::byte* codes() const { return codes_; }
  /// What makes the numbers again of its codes.
  const float* inverse() const { return numbers_; }

  /// By the scale that is there, writing the largest magnitude beside it; without one by that
  /// magnitude.
  void round(const float* scale, float* amax) const {
    const Elements x = call_->in(at_);
    const Shape& shape = call_->input(at_).type.shape;
    const Stream stream = call_->stream();
    float* const largest = amax != nullptr ? amax : numbers_ + 2 * kApart;
    largest_magnitude(stream, x, shape.elements(), largest);
    if (scale == nullptr) {
      scale_for(stream, format_, largest, numbers_ + kApart);
      scale = numbers_ + kApart;
    }
    invert(stream, scale, numbers_);
    quantise(stream, {x, shape.rows(), shape.last(0), transposed_, format_, scale, codes_,
                      outer_, inner_});
  }

 private:
  // cuBLASLt takes no scale that does not lie at a multiple of 16 bytes (status 15).
  static constexpr std::size_t kApart = 4;
  static constexpr std::size_t kNumbers = 3 * kApart;  // inverse, scale, largest magnitude

  Call* call_;
  std::size_t at_;
  DType format_;
  bool transposed_;
  Index outer_, inner_;
  std::byte* codes_;
  float* numbers_;
};

// Such products take rows of what is summed up alone, in both operands.
void run_fp8_matmul(Call& call, ProductShape shape, const Elements& bias) {
  const Index m = shape.m;
  const RoundedOperand a(call, 0, call.attributes().dtype("math_a"), shape.a_transposed, m,
                         shape.k);
  const RoundedOperand b(call, 1, call.attributes().dtype("math_b"), !shape.b_transposed,
                         shape.n, shape.k);
  shape.a = call.attributes().dtype("math_a");
  shape.b = call.attributes().dtype("math_b");
  shape.a_transposed = false;
  shape.b_transposed = true;
  shape.m = RoundedOperand::padded(m);
  shape.k = RoundedOperand::padded(shape.k);
  // Rows that are too many lie behind the others, and have to lie somewhere else.
  const Elements rows =
      shape.m == m ? call.out(0) : call.scratch(shape.result, shape.m * shape.n);
  const Product product(call, shape, bias);
  if (call.is_dry()) {
    return;
  }
  const auto scales = matmul_inputs(call.node()).scales;
  a.round(scales ? call.in_as<float>(*scales) : nullptr,
          scales ? call.out_as<float>(1) : nullptr);
  b.round(scales ? call.in_as<float>(*scales + 1) : nullptr,
          scales ? call.out_as<float>(2) : nullptr);
  const RoundedOperand& scaled = planted(Fault::wrong_fp8_scale) ? a : b;
  product.run(a.codes(), b.codes(), bias, rows, a.inverse(), scaled.inverse());
  if (rows.data != call.output(0).data) {
    convert(call.stream(), rows, call.out(0), m * shape.n);
  }
}

}  // namespace

void run_matmul(Call& call) {
  ProductShape shape = matmul_shape(call);
  const auto place = planted(Fault::no_bias) ? std::nullopt : matmul_inputs(call.node()).bias;
  shape.has_bias = place.has_value();
  const Elements bias = place ? call.in(*place) : Elements();
  if (is_fp8_product(call)) {
    return run_fp8_matmul(call, shape, bias);
  }
  shape.is_tf32 = is_tf32(call) || planted(Fault::tf32_in_fp32);
  const Product product(call, shape, bias);
  if (!call.is_dry()) {
    product.run(call.input(0).data, call.input(1).data, bias, call.out(0));
  }
}

// Rows of patches times the weights, then rows of outputs to planes of them.
void run_convolution(Call& call) {
  const ConvolutionShape of = convolution_shape(
      call, call.input(0).type.shape, call.input(1).type.shape, call.output(0).type.shape);
  const DType dtype = call.input(0).type.dtype;
  ProductShape shape;
  shape.m = of.images * of.positions();
  shape.k = of.patch();
  shape.n = of.outputs;
  shape.b_transposed = true;
  shape.has_bias = call.inputs() == 3;
  shape.is_tf32 = is_tf32(call);
  shape.a = shape.b = dtype;
  shape.result = call.output(0).type.dtype;
  const Elements bias = shape.has_bias ? call.in(2) : Elements();
  const Elements patches = call.scratch(dtype, shape.m * shape.k);
  const Elements rows = call.scratch(shape.result, shape.m * shape.n);
  const Product product(call, shape, bias);
  if (!call.is_dry()) {
    gather_patches(call.stream(), of, call.in(0), patches);
    product.run(patches.data, call.input(1).data, bias, rows);
    transpose(call.stream(), rows.data, call.output(0).data, of.images, of.positions(),
              of.outputs, bytes_of(shape.result));
  }
}

void run_convolution_input_gradient(Call& call) {
  const ConvolutionShape of = convolution_shape(
      call, call.output(0).type.shape, call.input(1).type.shape, call.input(0).type.shape);
  const DType dtype = call.input(0).type.dtype;
  ProductShape shape;
  shape.m = of.images * of.positions();
  shape.k = of.outputs;
  shape.n = of.patch();
  shape.is_tf32 = is_tf32(call);
  shape.a = shape.b = dtype;
  shape.result = DType::f32;
  const Elements rows = call.scratch(dtype, shape.m * shape.k);
  const Elements patches = call.scratch(DType::f32, shape.m * shape.n);
  const Product product(call, shape, {});
  if (!call.is_dry()) {
    transpose_outputs(call, of, call.in(0), rows);
    product.run(rows.data, call.input(1).data, {}, patches);
    scatter_patches(call.stream(), of, patches, call.out(0));
  }
}

void run_convolution_weight_gradient(Call& call) {
  const ConvolutionShape of = convolution_shape(
      call, call.input(1).type.shape, call.output(0).type.shape, call.input(0).type.shape);
  const DType dtype = call.input(0).type.dtype;
  ProductShape shape;
  shape.m = of.outputs;
  shape.k = of.images * of.positions();
  shape.n = of.patch();
  shape.a_transposed = true;
  shape.is_tf32 = is_tf32(call);
  shape.a = shape.b = dtype;
  shape.result = call.output(0).type.dtype;
  const Elements rows = call.scratch(dtype, shape.k * shape.m);
  const Elements patches = call.scratch(dtype, shape.k * shape.n);
  const bool has_bias = call.attributes().flag("bias");
  std::byte* const sums = call.scratch(has_bias ? sum_rows_bytes(1, shape.k, shape.m) : 0);
  const Product product(call, shape, {});
  if (!call.is_dry()) {
    transpose_outputs(call, of, call.in(0), rows);
    gather_patches(call.stream(), of, call.in(1), patches);
    product.run(rows.data, patches.data, {}, call.out(0));
    if (has_bias) {
      sum_rows(call.stream(), rows, call.out(1), 1, shape.k, shape.m, sums);
    }
  }
}

void run_attention(Call& call) {
  if (!call.is_dry()) {
    const AttentionShape shape = attention_shape(call, call.input(0).type.shape);
    attention(call.stream(),
              {shape, shape.tokens - planted(Fault::mask_column), score_scale(shape),
               is_tf32(call), call.in(0), call.out(0), call.out(1)});
  }
}

void run_attention_gradient(Call& call) {
  const AttentionShape shape = attention_shape(call, call.input(1).type.shape);
  AttentionGradient job{};
  job.along = reinterpret_cast<float*>(
      call.scratch(DType::f32, shape.images * shape.heads * shape.tokens).data);
  if (!call.is_dry()) {
    job.shape = shape;
    job.scale = score_scale(shape);
    job.is_tf32 = is_tf32(call);
    job.dout = call.in(0);
    job.qkv = call.in(1);
    job.out = call.in(2);
    job.lse = call.in(3);
    job.dqkv = call.out(0);
    attention_gradient(call.stream(), job);
  }
}

}  // namespace halfwatt::cuda

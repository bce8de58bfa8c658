#include <cmath>

#include "base/check.h"
#include "engine/backend/cpu/bindings.h"
#include "engine/backend/cpu/operands.h"
#include "engine/backend/cpu/product_library.h"
#include "engine/ops/matmul.h"

namespace halfwatt::cpu {
namespace {

// Through the library, into which tf32 and fp8 operands go as the floats they were rounded to.
// Returns where the result is, that the call has not finished with.
template <class E>
E* matmul_by_library(Call& call, const ProductShape& shape) {
  ProductLibrary& library = *call.products();
  ProductOperands operands{};
  operands.a = reinterpret_cast<const std::byte*>(operand<E>(call, 0, "math_a"));
  operands.b = reinterpret_cast<const std::byte*>(operand<E>(call, 1, "math_b"));
  operands.bias = shape.has_bias ? call.as<float>(2) : nullptr;
  E* const c = call.to<E>(0);
  operands.c = reinterpret_cast<std::byte*>(c);
  operands.workspace = call.scratch(library.prepare(call.workers(), shape));
  if (!call.is_dry()) {
    library.run(call.workers(), shape, operands);
  }
  return c;
}

// The shape of a linear node whose weights lie as the library has asked for.
std::optional<ProductShape> linear_by_library(const Call& call) {
  const TensorType& x = call.input(0).type;
  ProductShape shape;
  shape.m = x.shape.rows();
  shape.k = x.shape.last(0);
  shape.n = call.input(1).type.shape[0];
  shape.b_transposed = shape.b_in_panels = true;
  shape.has_bias = call.inputs() == 3;
  shape.operands = shape.result = x.dtype;
  const auto panels = call.products() ? call.products()->panels(x.dtype, shape.n, shape.k)
                                      : std::optional<PanelShape>();
  return panels && call.products()->has(shape) &&
                 panels->columns == call.attributes().integer("columns") &&
                 panels->steps == call.attributes().integer("steps")
             ? std::optional(shape)
             : std::nullopt;
}

ProductShape product_shape(const Call& call, DType dtype) {
  const MatmulExtents extents =
      matmul_extents(call.node(), call.input(0).type.shape, call.input(1).type.shape);
  ProductShape shape;
  shape.a_transposed = call.attributes().flag("transpose_a");
  shape.b_transposed = call.attributes().flag("transpose_b");
  shape.m = extents.m;
  shape.k = extents.k;
  shape.n = extents.n;
  shape.has_bias = matmul_inputs(call.node()).bias.has_value();
  shape.operands = shape.result = dtype;
  return shape;
}

template <class E>
void matmul(Call& call) {
  if constexpr (!std::is_same_v<E, double>) {
    const ProductShape shape = product_shape(call, stored_as<E>());
    if (call.products() && call.products()->has(shape)) {
      matmul_by_library<E>(call, shape);
      return call.finish();
    }
  }
  const Shape& a = call.input(0).type.shape;
  const Shape& b = call.input(1).type.shape;
  const MatmulExtents extents = matmul_extents(call.node(), a, b);
  Matmul<E> product{};
  product.a_transposed = call.attributes().flag("transpose_a");
  product.b_transposed = call.attributes().flag("transpose_b");
  product.m = extents.m;
  product.k = extents.k;
  product.n = extents.n;
  product.a = operand<E>(call, 0, "math_a");
  product.a_stride = a.last(0);
  product.b = operand<E>(call, 1, "math_b");
  product.b_stride = b.last(0);
  if (const auto bias = matmul_inputs(call.node()).bias) {
    product.bias = call.as<Real<E>>(*bias);
  }
  product.c = call.to<E>(0);
  product.c_stride = product.n;
  const Kernels<E>& table = kernels<E>(call.isa());
  product.workspace = call.scratch(table.matmul_bytes(call.workers(), product));
  if (!call.is_dry()) {
    table.matmul(call.workers(), product);
  }
  call.finish();
}

template <class E>
void linear(Call& call) {
  const Kernels<E>& table = kernels<E>(call.isa());
  if constexpr (!std::is_same_v<E, double>) {
    if (const auto shape = linear_by_library(call)) {
      E* const y = matmul_by_library<E>(call, *shape);
      if (call.attributes().flag("gelu") && !call.is_dry()) {
        table.gelu_forward(call.workers(), {shape->m * shape->n, y, y});
      }
      return call.finish();
    }
  }
  const Shape& x = call.input(0).type.shape;
  Linear<E> job{};
  job.rows = x.rows();
  job.width = x.last(0);
  job.features = call.input(1).type.shape[0];
  HALFWATT_CHECK(call.attributes().integer("columns") == table.panels.columns &&
                     call.attributes().integer("steps") == table.panels.steps,
                 "weights lie as this processor's kernels read them");
  job.x = call.as<E>(0);
  job.panels = call.as<E>(1);
  job.bias = call.inputs() == 3 ? call.as<Real<E>>(2) : nullptr;
  job.gelu = call.attributes().flag("gelu");
  job.y = call.to<E>(0);
  job.workspace =
      call.scratch(table.linear_bytes(job.rows, job.width, call.workers().threads()));
  if (!call.is_dry()) {
    table.linear(call.workers(), job);
  }
  call.finish();
}

AttentionShape attention_shape(const Call& call, const Shape& qkv) {
  const Index heads = call.attributes().integer("heads");
  return {qkv[0], qkv[1], heads, qkv[2] / 3 / heads};
}

template <class E>
Real<E> score_scale(const AttentionShape& shape) {
  return static_cast<Real<E>>(1 / std::sqrt(static_cast<double>(shape.width)));
}

}  // namespace

void run_matmul(Call& call) {
  with_element(computed_as(call), [&](auto element) { matmul<decltype(element)>(call); });
}

void run_linear(Call& call) {
  with_element(call.input(0).type.dtype,
               [&](auto element) { linear<decltype(element)>(call); });
}

void run_attention(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Kernels<E>& table = kernels<E>(call.isa());
    AttentionForward<E> job{};
    job.shape = attention_shape(call, call.input(0).type.shape);
    job.scale = score_scale<E>(job.shape);
    job.qkv = call.as<E>(0);
    job.out = call.to<E>(0);
    job.lse = call.to<Real<E>>(1);
    job.workspace =
        call.scratch(table.attention_forward_bytes(job.shape, call.workers().threads()));
    if (!call.is_dry()) {
      table.attention_forward(call.workers(), job);
    }
    call.finish();
  });
}

void run_attention_gradient(Call& call) {
  with_element(call.input(1).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Kernels<E>& table = kernels<E>(call.isa());
    AttentionBackward<E> job{};
    job.shape = attention_shape(call, call.input(1).type.shape);
    job.scale = score_scale<E>(job.shape);
    job.dout = call.as<E>(0);
    job.qkv = call.as<E>(1);
    job.out = call.as<E>(2);
    job.lse = call.as<Real<E>>(3);
    job.dqkv = call.to<E>(0);
    job.workspace =
        call.scratch(table.attention_backward_bytes(job.shape, call.workers().threads()));
    if (!call.is_dry()) {
      table.attention_backward(call.workers(), job);
    }
    call.finish();
  });
}

}  // namespace halfwatt::cpu

#include "engine/backend/cpu/bindings.h"
#include "engine/backend/cpu/convolution_library.h"
#include "engine/backend/cpu/operands.h"

namespace halfwatt::cpu {
namespace {

using Wanted = ConvolutionCall::Result;

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

template <class E>
std::byte* bytes(const E* data) {
  return reinterpret_cast<std::byte*>(const_cast<E*>(data));
}

// The call, if there is a library and it computes that.
std::optional<ConvolutionCall> foreign(const Call& call,
                                       Wanted result,
                                       const ConvolutionShape& shape,
                                       DType dtype) {
  const ConvolutionCall wanted{result, shape, result == Wanted::outputs && call.inputs() == 3,
                               dtype};
  const bool has = call.convolutions() && call.convolutions()->has(call.workers(), wanted);
  return has ? std::optional(wanted) : std::nullopt;
}

void run_foreign(Call& call, const ConvolutionCall& wanted, ConvolutionOperands operands) {
  ConvolutionLibrary& library = *call.convolutions();
  operands.workspace = call.scratch(library.workspace(call.workers(), wanted));
  if (!call.is_dry()) {
    library.run(call.workers(), wanted, operands);
  }
}

template <class E>
std::byte* own_workspace(Call& call) {
  return call.scratch(kernels<E>(call.isa()).convolution_bytes(call.workers().threads()));
}

template <class E>
void convolution(Call& call) {
  Convolution<E> job{};
  job.shape = convolution_shape(call, call.input(0).type.shape, call.input(1).type.shape,
                                call.output(0).type.shape);
  job.images = operand<E>(call, 0, "math_a");
  job.weights = operand<E>(call, 1, "math_b");
  job.bias = call.inputs() == 3 ? call.as<Real<E>>(2) : nullptr;
  if constexpr (!std::is_same_v<E, double>) {
    if (const auto wanted = foreign(call, Wanted::outputs, job.shape, stored_as<E>())) {
      run_foreign(call, *wanted,
                  {bytes(job.images), bytes(job.weights), job.bias, bytes(call.to<E>(0)), {}});
      return call.finish();
    }
  }
  job.y = call.to<Real<E>>(0);
  job.workspace = own_workspace<E>(call);
  if (!call.is_dry()) {
    kernels<E>(call.isa()).convolution(call.workers(), job);
  }
  call.finish();
}

template <class E>
void convolution_input_gradient(Call& call) {
  ConvolutionInputGradient<E> job{};
  job.shape = convolution_shape(call, call.output(0).type.shape, call.input(1).type.shape,
                                call.input(0).type.shape);
  job.dy = operand<E>(call, 0, "math_a");
  job.weights = operand<E>(call, 1, "math_b");
  if constexpr (!std::is_same_v<E, double>) {
    if (const auto wanted = foreign(call, Wanted::images, job.shape, stored_as<E>())) {
      run_foreign(call, *wanted,
                  {bytes(call.to<E>(0)), bytes(job.weights), nullptr, bytes(job.dy), {}});
      return call.finish();
    }
  }
  job.dx = call.to<Real<E>>(0);
  job.workspace = own_workspace<E>(call);
  if (!call.is_dry()) {
    kernels<E>(call.isa()).convolution_input_gradient(call.workers(), job);
  }
  call.finish();
}

template <class E>
void bias_gradient(Call& call, const ConvolutionShape& shape, const E* dy) {
  ConvolutionBiasGradient<E> job{};
  job.images = shape.images;
  job.outputs = shape.outputs;
  job.positions = shape.out_height * shape.out_width;
  job.dy = dy;
  job.dbias = call.to<Real<E>>(1);
  if (!call.is_dry()) {
    kernels<E>(call.isa()).convolution_bias_gradient(call.workers(), job);
  }
}

template <class E>
void convolution_weight_gradient(Call& call) {
  ConvolutionWeightGradient<E> job{};
  job.shape = convolution_shape(call, call.input(1).type.shape, call.output(0).type.shape,
                                call.input(0).type.shape);
  // Of a bias it is a sum, not a product, for which nothing is rounded.
  const E* const dy = call.as<E>(0);
  if (call.attributes().flag("bias")) {
    bias_gradient(call, job.shape, dy);
  }
  job.dy = operand(call, dy, 0, "math_a");
  job.images = operand<E>(call, 1, "math_b");
  job.dweights = call.to<Real<E>>(0);
  if constexpr (!std::is_same_v<E, double>) {
    if (const auto wanted = foreign(call, Wanted::weights, job.shape, stored_as<E>())) {
      run_foreign(call, *wanted,
                  {bytes(job.images), bytes(job.dweights), nullptr, bytes(job.dy), {}});
      return call.finish();
    }
  }
  job.workspace = own_workspace<E>(call);
  if (!call.is_dry()) {
    kernels<E>(call.isa()).convolution_weight_gradient(call.workers(), job);
  }
  call.finish();
}

}  // namespace

void run_convolution(Call& call) {
  with_element(computed_as(call), [&](auto element) { convolution<decltype(element)>(call); });
}

void run_convolution_input_gradient(Call& call) {
  with_element(computed_as(call),
               [&](auto element) { convolution_input_gradient<decltype(element)>(call); });
}

void run_convolution_weight_gradient(Call& call) {
  with_element(computed_as(call),
               [&](auto element) { convolution_weight_gradient<decltype(element)>(call); });
}

}  // namespace halfwatt::cpu

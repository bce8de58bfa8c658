#pragma once

#include <oneapi/dnnl/dnnl.hpp>

// What differs between oneDNN 2 and 3, for the files that use it.

namespace halfwatt::cpu {

struct MatmulMemory {
  dnnl::memory::desc a, b, bias, c;
  bool has_bias;
};

inline dnnl::matmul::primitive_desc matmul_primitive(const dnnl::engine& engine,
                                                     const MatmulMemory& memory,
                                                     const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return memory.has_bias
             ? dnnl::matmul::primitive_desc(engine, memory.a, memory.b, memory.bias, memory.c,
                                            attributes)
             : dnnl::matmul::primitive_desc(engine, memory.a, memory.b, memory.c, attributes);
#else
  const dnnl::matmul::desc description =
      memory.has_bias ? dnnl::matmul::desc(memory.a, memory.b, memory.bias, memory.c)
                      : dnnl::matmul::desc(memory.a, memory.b, memory.c);
  return {description, attributes, engine};
#endif
}

/// Images, weights and outputs of a convolution, or their gradients.
struct ConvolutionMemory {
  dnnl::memory::desc images, weights, bias, outputs;
  bool has_bias;
  dnnl::memory::dims strides, padding;
};

inline dnnl::convolution_forward::primitive_desc convolution_primitive(
    const dnnl::engine& engine,
    const ConvolutionMemory& memory,
    const dnnl::primitive_attr& attributes) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kHow = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return memory.has_bias
             ? dnnl::convolution_forward::primitive_desc(
                   engine, kKind, kHow, memory.images, memory.weights, memory.bias,
                   memory.outputs, memory.strides, memory.padding, memory.padding, attributes)
             : dnnl::convolution_forward::primitive_desc(
                   engine, kKind, kHow, memory.images, memory.weights, memory.outputs,
                   memory.strides, memory.padding, memory.padding, attributes);
#else
  const dnnl::convolution_forward::desc description =
      memory.has_bias
          ? dnnl::convolution_forward::desc(kKind, kHow, memory.images, memory.weights,
                                            memory.bias, memory.outputs, memory.strides,
                                            memory.padding, memory.padding)
          : dnnl::convolution_forward::desc(kKind, kHow, memory.images, memory.weights,
                                            memory.outputs, memory.strides, memory.padding,
                                            memory.padding);
  return {description, attributes, engine};
#endif
}

/// Of the images' gradient; `forward` is the convolution of the same memory, but for its types.
inline dnnl::convolution_backward_data::primitive_desc images_gradient_primitive(
    const dnnl::engine& engine,
    const ConvolutionMemory& memory,
    const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  constexpr auto kHow = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine,         kHow,           memory.images,  memory.weights, memory.outputs,
          memory.strides, memory.padding, memory.padding, forward,        attributes};
#else
  const dnnl::convolution_backward_data::desc description(kHow, memory.images, memory.weights,
                                                          memory.outputs, memory.strides,
                                                          memory.padding, memory.padding);
  return {description, attributes, engine, forward};
#endif
}

/// Of the weights' gradient.
inline dnnl::convolution_backward_weights::primitive_desc weights_gradient_primitive(
    const dnnl::engine& engine,
    const ConvolutionMemory& memory,
    const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  constexpr auto kHow = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine,         kHow,           memory.images,  memory.weights, memory.outputs,
          memory.strides, memory.padding, memory.padding, forward,        attributes};
#else
  const dnnl::convolution_backward_weights::desc description(
      kHow, memory.images, memory.weights, memory.outputs, memory.strides, memory.padding,
      memory.padding);
  return {description, attributes, engine, forward};
#endif
}

}  // namespace halfwatt::cpu

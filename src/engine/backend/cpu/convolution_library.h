#pragma once

#include <cstddef>
#include <memory>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/tensor/dtype.h"

namespace halfwatt::cpu {

/// A convolution, or one of its gradients, as its library sees it: everything contiguous, in
/// the order of ConvolutionShape.
struct ConvolutionCall {
  enum class Result { outputs, images, weights };
  Result result = Result::outputs;  ///< what is computed; of images and weights the gradient
  ConvolutionShape shape;
  bool has_bias = false;
  DType dtype =
      DType::f32;  ///< of everything but the bias and the gradient of the weights: f32
  auto operator<=>(const ConvolutionCall&) const = default;
};

/// Where images, weights and outputs lie, or their gradients; one of them is written.
struct ConvolutionOperands {
  std::byte* images;
  std::byte* weights;
  const float* bias;  ///< [outputs]
  std::byte* outputs;
  std::byte* workspace;
};

/// A library of convolutions; the build decides which, and may have none.
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  /// Whether it computes `call`, and not by loops that are slower than our own. Makes ready
  /// what run() needs.
  virtual bool has(const Workers& workers, const ConvolutionCall& call) = 0;
  /// Bytes of workspace of a call that it has.
  virtual std::size_t workspace(const Workers& workers, const ConvolutionCall& call) = 0;
  /// An image's outputs and gradient are the same bits whatever other images there are, and on
  /// any number of threads; the gradient of the weights is on the same number of threads.
  /// Throws Failure if the library fails.
  virtual void run(Workers& workers,
                   const ConvolutionCall& call,
                   const ConvolutionOperands& operands) = 0;
};

/// The library of this build; nullptr if it has none, and own kernels compute everything.
std::unique_ptr<ConvolutionLibrary> open_convolution_library();

}  // namespace halfwatt::cpu

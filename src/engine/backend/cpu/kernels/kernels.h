#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kernels/workers.h"

// What each kernel takes. `E` is how elements are stored: float, double or Bf16. Matrices are
// row-major and contiguous unless a stride is named. Pointers that may be null say so; where an
// output may be the same as an input, that is said too. Workspaces are the caller's, as large
// as the function beside the kernel says, aligned to 64 bytes; a kernel allocates nothing.

namespace halfwatt::cpu {

/// The bits of a bf16.
using Bf16 = std::uint16_t;

/// What a kernel on elements stored as `E` computes in: double for double, else float.
template <class E>
using Real = std::conditional_t<std::is_same_v<E, double>, double, float>;

/// y = (x - mean) * rstd * gamma + beta over each row.
template <class E>
struct LayerNormForward {
  Index rows, width;
  const E* x;                   ///< [rows, width]
  const E* residual = nullptr;  ///< [rows, width]: added to x first, if there is one
  E* sum = nullptr;             ///< [rows, width]: x + residual, as stored; may be x
  const Real<E>* gamma;         ///< [width]
  const Real<E>* beta;          ///< [width]
  Real<E> epsilon;
  E* y;           ///< [rows, width]
  Real<E>* mean;  ///< [rows]
  Real<E>* rstd;  ///< [rows]
};

template <class E>
struct LayerNormBackward {
  Index rows, width;
  const E* dy;                  ///< [rows, width]
  const E* x;                   ///< [rows, width]: what was normalised
  const Real<E>* gamma;         ///< [width]
  const Real<E>* mean;          ///< [rows]
  const Real<E>* rstd;          ///< [rows]
  const E* residual = nullptr;  ///< [rows, width]: a gradient that is added to dx, as stored
  E* dx;                        ///< [rows, width]; may be dy
  Real<E>* dgamma;              ///< [width]
  Real<E>* dbeta;               ///< [width]
  std::byte* workspace;
};

struct AttentionShape {
  Index images, tokens, heads, width;  ///< `width` of one head
};

/// softmax(scale * q k^T) v of every image and head, q being scaled before the product.
template <class E>
struct AttentionForward {
  AttentionShape shape;
  Real<E> scale;
  const E* qkv;  ///< [images, tokens, 3, heads, width], as timm packs it
  E* out;        ///< [images, tokens, heads, width]
  Real<E>* lse;  ///< [images, heads, tokens]: log of the row's sum; -inf where all scores are
  std::byte* workspace;
};

template <class E>
struct AttentionBackward {
  AttentionShape shape;
  Real<E> scale;
  const E* dout;       ///< [images, tokens, heads, width]
  const E* qkv;        ///< [images, tokens, 3, heads, width]
  const E* out;        ///< [images, tokens, heads, width]
  const Real<E>* lse;  ///< [images, heads, tokens]
  E* dqkv;             ///< [images, tokens, 3, heads, width]
  std::byte* workspace;
};

/// y = gelu(x) with the exact normal distribution function.
template <class E>
struct GeluForward {
  Index count;
  const E* x;
  E* y;  ///< may be x
};

template <class E>
struct GeluBackward {
  Index count;
  const E* dy;
  const E* x;
  E* dx;  ///< may be dy
};

/// Cross entropy of softmax(logits) with the labels, smoothed: 1 - smoothing of the target at
/// the label, `smoothing` spread over all classes. Rows from `valid` on are padding: their loss
/// and gradient are 0.
template <class E>
struct CrossEntropy {
  Index rows, classes, valid;
  const E* logits;             ///< [rows, classes]
  const std::int64_t* labels;  ///< [rows]: of valid rows, in [0, classes)
  Real<E> smoothing = 0;
  Real<E>* loss;          ///< [rows]
  Real<E>* mean;          ///< one: over the valid rows; 0 if there are none
  E* gradient = nullptr;  ///< [rows, classes]: factor * d mean / d logits; may be logits
  Real<E> factor = 1;
};

/// Binary cross entropy of sigmoid(logits) with targets in [0, 1]; padding as above.
template <class E>
struct BinaryCrossEntropy {
  Index rows, classes, valid;
  const E* logits;         ///< [rows, classes]
  const Real<E>* targets;  ///< [rows, classes]
  Real<E>* loss;           ///< [rows]: mean over the classes
  Real<E>* mean;           ///< one: over the valid rows; 0 if there are none
  E* gradient = nullptr;   ///< [rows, classes]: factor * d mean / d logits; may be logits
  Real<E> factor = 1;
};

/// One step of AdamW as torch.optim.AdamW does it. The calling thread does it all: who splits
/// what, by elements of all parameters together, is who calls.
template <class T>
struct AdamW {
  Index count;
  T* parameters;       ///< [count]
  T* first_moments;    ///< [count]
  T* second_moments;   ///< [count]
  const T* gradients;  ///< [count]
  double lr, beta1, beta2, epsilon, weight_decay;
  std::int64_t step;  ///< counts from 1
  T unscale = 1;      ///< the gradients are multiplied by it
};

/// One step of SGD as torch.optim.SGD does it, without dampening and Nesterov's variant; by the
/// calling thread.
template <class T>
struct Sgd {
  Index count;
  T* parameters;       ///< [count]
  T* momenta;          ///< [count]
  const T* gradients;  ///< [count]
  double lr, momentum, weight_decay;
  std::int64_t step;  ///< counts from 1: the first one sets the momenta
  T unscale = 1;      ///< the gradients are multiplied by it
};

/// What a step did to parameters: how many are not finite after it, how many are what they
/// were.
struct Tally {
  std::int64_t not_finite = 0;
  std::int64_t unchanged = 0;
};

/// A sum of squares in double. Squares of floats cannot overflow there, so it is finite exactly
/// if every element is; of doubles, those beyond 1e150 count as not finite.
struct SquareSum {
  double value;
  bool finite;
};

/// y = a + b, b being repeated for every row: a bias, a position embedding.
template <class E>
struct AddRows {
  Index rows, width;
  const E* a;        ///< [rows, width]
  const Real<E>* b;  ///< [width]
  E* y;              ///< [rows, width]; may be a
};

/// y = a + b.
template <class E>
struct Add {
  Index count;
  const E* a;
  const E* b;
  E* y;  ///< may be a or b
};

/// y = the sum of the rows: the gradient of what AddRows repeats.
template <class E>
struct SumRows {
  Index rows, width;
  const E* x;  ///< [rows, width]
  Real<E>* y;  ///< [width]
  std::byte* workspace;
};

/// Each row times its own factor: DropPath.
template <class E>
struct ScaleRows {
  Index rows, width;
  const E* x;              ///< [rows, width]
  const Real<E>* factors;  ///< [rows]
  E* y;                    ///< [rows, width]; may be x
};

/// c = op(a) op(b) (+ bias), summed in Real<E> and stored once.
template <class E>
struct Matmul {
  Index m, n, k;
  const E* a;      ///< [m, k], or [k, m] if transposed
  Index a_stride;  ///< elements from row to row, as for b and c
  bool a_transposed = false;
  const E* b;  ///< [k, n], or [n, k] if transposed
  Index b_stride;
  bool b_transposed = false;
  const Real<E>* bias = nullptr;  ///< [n]
  E* c;                           ///< [m, n]; overlaps neither a nor b
  Index c_stride;
  std::byte* workspace = nullptr;
};

/// How weights of a linear layer lie in panels: [features / columns, width / steps, columns,
/// steps]. Features are a multiple of `columns`, `width` is one of `steps`.
struct PanelShape {
  Index columns, steps;
};

/// y = x w^T (+ bias), and GELU of it if asked; w [features, width] in panels, as stored.
template <class E>
struct Linear {
  Index rows, width, features;
  const E* x;                     ///< [rows, width]
  const E* panels;                ///< as PanelShape says
  const Real<E>* bias = nullptr;  ///< [features]; there where there is a GELU
  bool gelu = false;
  E* y;  ///< [rows, features]; overlaps neither x nor the panels
  std::byte* workspace;
};

struct ConvolutionShape {
  Index images, channels, height, width;
  Index outputs, kernel_height, kernel_width;
  Index stride, padding;  ///< of both sides alike, by zeros
  Index out_height, out_width;
  auto operator<=>(const ConvolutionShape&) const = default;
};

/// y = images * weights (+ bias), as PyTorch's conv2d.
template <class E>
struct Convolution {
  ConvolutionShape shape;
  const E* images;                ///< [images, channels, height, width]
  const E* weights;               ///< [outputs, channels, kernel_height, kernel_width]
  const Real<E>* bias = nullptr;  ///< [outputs]
  Real<E>* y;                     ///< [images, outputs, out_height, out_width]
  std::byte* workspace;
};

/// The gradient of the images.
template <class E>
struct ConvolutionInputGradient {
  ConvolutionShape shape;
  const E* dy;       ///< [images, outputs, out_height, out_width]
  const E* weights;  ///< [outputs, channels, kernel_height, kernel_width]
  Real<E>* dx;       ///< [images, channels, height, width]
  std::byte* workspace;
};

/// The gradient of the weights.
template <class E>
struct ConvolutionWeightGradient {
  ConvolutionShape shape;
  const E* dy;        ///< [images, outputs, out_height, out_width]
  const E* images;    ///< [images, channels, height, width]
  Real<E>* dweights;  ///< [outputs, channels, kernel_height, kernel_width]
  std::byte* workspace;
};

/// The gradient of the bias: sums over all images and positions.
template <class E>
struct ConvolutionBiasGradient {
  Index images, outputs, positions;
  const E* dy;     ///< [images, outputs, positions]
  Real<E>* dbias;  ///< [outputs]
};

/// The kernels for elements stored as `E`, compiled for one ISA. All results are the same bits
/// for every number of threads, and a row's (an image's) do not depend on the other rows, nor
/// on where it lies; sums over rows are taken in an order that follows from their number alone.
template <class E>
struct Kernels {
  using T = Real<E>;

  void (*layer_norm_forward)(Workers&, const LayerNormForward<E>&);
  void (*layer_norm_backward)(Workers&, const LayerNormBackward<E>&);
  std::size_t (*layer_norm_backward_bytes)(Index rows, Index width);

  void (*attention_forward)(Workers&, const AttentionForward<E>&);
  std::size_t (*attention_forward_bytes)(const AttentionShape&, int threads);
  void (*attention_backward)(Workers&, const AttentionBackward<E>&);
  std::size_t (*attention_backward_bytes)(const AttentionShape&, int threads);

  void (*gelu_forward)(Workers&, const GeluForward<E>&);
  void (*gelu_backward)(Workers&, const GeluBackward<E>&);

  void (*cross_entropy)(Workers&, const CrossEntropy<E>&);
  void (*binary_cross_entropy)(Workers&, const BinaryCrossEntropy<E>&);

  void (*adamw)(const AdamW<T>&);
  void (*sgd)(const Sgd<T>&);
  Tally (*tally)(Index count, const T* before, const T* after);  ///< count: below 2^31
  SquareSum (*square_sum)(Workers&, Index count, const E* x);

  void (*add)(Workers&, const Add<E>&);
  void (*add_rows)(Workers&, const AddRows<E>&);
  void (*sum_rows)(Workers&, const SumRows<E>&);
  std::size_t (*sum_rows_bytes)(Index rows, Index width);
  void (*scale_rows)(Workers&, const ScaleRows<E>&);

  void (*matmul)(Workers&, const Matmul<E>&);
  /// By extents, strides and transposes; not by the pointers.
  std::size_t (*matmul_bytes)(const Workers&, const Matmul<E>&);
  void (*linear)(Workers&, const Linear<E>&);
  std::size_t (*linear_bytes)(Index rows, Index width, int threads);
  PanelShape panels;  ///< of linear()

  void (*convolution)(Workers&, const Convolution<E>&);
  void (*convolution_input_gradient)(Workers&, const ConvolutionInputGradient<E>&);
  void (*convolution_weight_gradient)(Workers&, const ConvolutionWeightGradient<E>&);
  std::size_t (*convolution_bytes)(int threads);  ///< of each of the three
  void (*convolution_bias_gradient)(Workers&, const ConvolutionBiasGradient<E>&);
};

/// The table for `isa`, which machine_has() must have told the machine has. `E` is float,
/// double or Bf16.
template <class E>
const Kernels<E>& kernels(Isa isa);

extern template const Kernels<float>& kernels<float>(Isa isa);
extern template const Kernels<double>& kernels<double>(Isa isa);
extern template const Kernels<Bf16>& kernels<Bf16>(Isa isa);

}  // namespace halfwatt::cpu

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace halfwatt::cpu {

/// The workspace of a call, handed out piece by piece. Without memory it only counts, so that
/// the function which uses a workspace is the one that says how large it has to be.
class Scratch {
 public:
  explicit Scratch(std::byte* memory) : memory_(memory) {}
  /// Aligned to kAlignment; null where it only counts.
  std::byte* take(std::size_t bytes);
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

class ProductLibrary;
class ConvolutionLibrary;

/// What computes: threads, the ISA of the kernels, and libraries for products and convolutions,
/// if there are any.
struct Machine {
  Workers* workers;
  Isa isa;
  ProductLibrary* products;
  ConvolutionLibrary* convolutions;
};

/// One node to be computed. A dry call computes nothing: it is made to count the workspace.
class Call {
 public:
  /// `node`, `inputs` and `outputs` outlive it.
  Call(const Node& node,
       std::span<const TensorView> inputs,
       std::span<const TensorView> outputs,
       std::byte* workspace,
       const Machine& machine,
       bool dry);

  const Node& node() const { return *node_; }
  const Attributes& attributes() const { return node_->attributes; }
  Workers& workers() const { return *machine_.workers; }
  Isa isa() const { return machine_.isa; }
  ProductLibrary* products() const { return machine_.products; }
  ConvolutionLibrary* convolutions() const { return machine_.convolutions; }
  bool is_dry() const { return dry_; }

  std::size_t inputs() const { return inputs_.size(); }
  const TensorView& input(std::size_t at) const { return inputs_[at]; }
  const TensorView& output(std::size_t at) const { return outputs_[at]; }
  std::byte* scratch(std::size_t bytes) { return scratch_.take(bytes); }
  std::size_t scratch_used() const { return scratch_.used(); }

  /// An input as `T`s (float, double or Bf16): where it lies if it is stored so, else converted
  /// into the workspace.
  template <class T>
  const T* as(std::size_t at);
  /// A scalar input as a double or a number of another kind; 0 of a dry call.
  template <class T>
  T scalar(std::size_t at) const;
  /// Where an output is to be computed as `T`s: where it lies if it is stored so, else in the
  /// workspace, from which finish() converts it. finish() has to be called then.
  template <class T>
  T* to(std::size_t at);
  void finish();

 private:
  struct Pending {
    TensorView from;
    TensorView to;
  };
  const Node* node_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  Scratch scratch_;
  Machine machine_;
  bool dry_;
  std::vector<Pending> pending_;
};

/// The dtype that `T`s are stored as.
template <class T>
constexpr DType stored_as() {
  if constexpr (std::is_same_v<T, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else {
    return DType::bf16;
  }
}

}  // namespace halfwatt::cpu

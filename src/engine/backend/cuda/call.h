#pragma once

#include <cstddef>
#include <span>

#include "engine/backend/cuda/kernels/memory.h"
#include "engine/backend/cuda/products.h"
#include "engine/graph/graph.h"

namespace halfwatt::cuda {

/// What a call enqueues on.
struct Machine {
  int device = 0;
  Stream stream = nullptr;
  Products* products = nullptr;
};

/// One node to be enqueued. A dry call enqueues nothing: it counts the workspace, or prepares
/// what the node's products need.
class Call {
 public:
  enum class Purpose { count, prepare, enqueue };

  /// `node`, `inputs` and `outputs` outlive it.
  Call(const Node& node,
       std::span<const TensorView> inputs,
       std::span<const TensorView> outputs,
       std::byte* workspace,
       const Machine& machine,
       Purpose purpose)
      : node_(&node),
        inputs_(inputs),
        outputs_(outputs),
        workspace_(workspace),
        machine_(machine),
        purpose_(purpose) {}

  const Node& node() const { return *node_; }
  const Attributes& attributes() const { return node_->attributes; }
  Stream stream() const { return machine_.stream; }
  Products& products() const { return *machine_.products; }
  bool is_dry() const { return purpose_ != Purpose::enqueue; }
  bool prepares() const { return purpose_ == Purpose::prepare; }

  std::size_t inputs() const { return inputs_.size(); }
  const TensorView& input(std::size_t at) const { return inputs_[at]; }
  const TensorView& output(std::size_t at) const { return outputs_[at]; }
  Elements in(std::size_t at) const { return {inputs_[at].data, inputs_[at].type.dtype}; }
  Elements out(std::size_t at) const { return {outputs_[at].data, outputs_[at].type.dtype}; }
  /// The first element of an input or output, seen as a `T`.
  template <class T>
  const T* in_as(std::size_t at) const {
    return reinterpret_cast<const T*>(inputs_[at].data);
  }
  template <class T>
  T* out_as(std::size_t at) const {
    return reinterpret_cast<T*>(outputs_[at].data);
  }
  Index count(std::size_t input) const { return inputs_[input].type.shape.elements(); }

  /// A piece of the workspace; null where it is only counted.
  std::byte* scratch(std::size_t bytes);
  Elements scratch(DType dtype, Index count) {
    return {scratch(static_cast<std::size_t>(count) * bytes_of(dtype)), dtype};
  }
  std::size_t scratch_used() const { return used_; }

 private:
  const Node* node_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  std::byte* workspace_;
  Machine machine_;
  Purpose purpose_;
  std::size_t used_ = 0;
};

}  // namespace halfwatt::cuda

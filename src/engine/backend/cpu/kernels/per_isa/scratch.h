#pragma once

#include "engine/backend/cpu/kernels/per_isa/numbers.h"

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// Deals out a workspace piece by piece; over null, it only counts. So one function says how a
/// workspace is laid out, and how large it is.
class Scratch {
 public:
  explicit Scratch(std::byte* base) : base_(base) {}
  /// The part of `thread` in a workspace that has `bytes` for each.
  static Scratch of_thread(std::byte* workspace, std::size_t bytes, int thread) {
    return Scratch(workspace + bytes * static_cast<std::size_t>(thread));
  }

  template <class T>
  T* take(Index count) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += static_cast<std::size_t>(rounded_up(count * static_cast<Index>(sizeof(T)), 64));
    return reinterpret_cast<T*>(piece);
  }

  /// What was taken, for each of `threads`.
  std::size_t bytes(int threads) const { return used_ * static_cast<std::size_t>(threads); }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

#include "engine/backend/cpu/call.h"

#include "engine/plan/plan.h"
#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

bool is_stored_as(DType dtype, DType wanted) {
  return dtype == wanted || (wanted == DType::f32 && dtype == DType::tf32);
}

// In equal parts, so that each thread converts what it may well use.
void convert_by(Workers& workers, const TensorView& from, const TensorView& to) {
  const std::size_t from_bytes = bytes_of(from.type.dtype);
  const std::size_t to_bytes = bytes_of(to.type.dtype);
  constexpr Index kGrain = 4096;
  workers.parallel_for(from.type.shape.elements(), kGrain, [&](Index begin, Index end, int) {
    const Shape part{end - begin};
    const auto at = static_cast<std::size_t>(begin);
    convert(TensorView{{from.type.dtype, part}, from.data + at * from_bytes},
            TensorView{{to.type.dtype, part}, to.data + at * to_bytes});
  });
}

}  // namespace

std::byte* Scratch::take(std::size_t bytes) {
  std::byte* piece = memory_ ? memory_ + used_ : nullptr;
  used_ += aligned(bytes);
  return piece;
}

Call::Call(const Node& node,
           std::span<const TensorView> inputs,
           std::span<const TensorView> outputs,
           std::byte* workspace,
           const Machine& machine,
           bool dry)
    : node_(&node),
      inputs_(inputs),
      outputs_(outputs),
      scratch_(workspace),
      machine_(machine),
      dry_(dry) {}

template <class T>
const T* Call::as(std::size_t at) {
  const TensorView& view = inputs_[at];
  if (is_stored_as(view.type.dtype, stored_as<T>())) {
    return reinterpret_cast<const T*>(view.data);
  }
  const TensorType type{stored_as<T>(), view.type.shape};
  std::byte* piece = scratch_.take(type.bytes());
  if (!dry_) {
    convert_by(workers(), view, {type, piece});
  }
  return reinterpret_cast<const T*>(piece);
}

template <class T>
T* Call::to(std::size_t at) {
  const TensorView& view = outputs_[at];
  if (is_stored_as(view.type.dtype, stored_as<T>())) {
    return reinterpret_cast<T*>(view.data);
  }
  const TensorType type{stored_as<T>(), view.type.shape};
  std::byte* piece = scratch_.take(type.bytes());
  pending_.push_back({{type, piece}, view});
  return reinterpret_cast<T*>(piece);
}

void Call::finish() {
  for (const Pending& each : pending_) {
    if (!dry_) {
      convert_by(workers(), each.from, each.to);
    }
  }
  pending_.clear();
}

template <class T>
T Call::scalar(std::size_t at) const {
  if (dry_) {
    return T{};
  }
  const TensorView& view = inputs_[at];
  if (!is_float(view.type.dtype)) {
    switch (bytes_of(view.type.dtype)) {
      case 8:
        return static_cast<T>(*reinterpret_cast<const std::int64_t*>(view.data));
      case 4:
        return static_cast<T>(*reinterpret_cast<const std::int32_t*>(view.data));
      default:
        return static_cast<T>(*reinterpret_cast<const std::uint8_t*>(view.data));
    }
  }
  double value = 0;
  convert(view,
          TensorView{{DType::f64, view.type.shape}, reinterpret_cast<std::byte*>(&value)});
  return static_cast<T>(value);
}

template const float* Call::as<float>(std::size_t);
template const double* Call::as<double>(std::size_t);
template const Bf16* Call::as<Bf16>(std::size_t);
template float* Call::to<float>(std::size_t);
template double* Call::to<double>(std::size_t);
template Bf16* Call::to<Bf16>(std::size_t);
template double Call::scalar<double>(std::size_t) const;
template float Call::scalar<float>(std::size_t) const;
template std::int64_t Call::scalar<std::int64_t>(std::size_t) const;
template bool Call::scalar<bool>(std::size_t) const;

}  // namespace halfwatt::cpu

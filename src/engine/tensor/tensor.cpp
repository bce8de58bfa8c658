#include "engine/tensor/tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

namespace halfwatt {

std::string text(const TensorType& type) {
  return fmt::format("{} {}", text(type.dtype), text(type.shape));
}

Tensor::Tensor(TensorType type)
    : type_(type),
      data_(static_cast<std::byte*>(::operator new[](std::max<std::size_t>(type.bytes(), 1),
                                                     std::align_val_t(kAlignment)))) {}

void Tensor::Free::operator()(std::byte* data) const {
  ::operator delete[](data, std::align_val_t(kAlignment));
}

Tensor Tensor::copy() const {
  Tensor same(type_);
  std::memcpy(same.data_.get(), data_.get(), type_.bytes());
  return same;
}

}  // namespace halfwatt

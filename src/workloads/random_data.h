#pragma once

#include <cstdint>

#include "engine/data/image_set.h"
#include "engine/models/vit.h"

namespace halfwatt {

/// Normal numbers, as data of a real run would be spread: zeros are multiplied with less power
/// and, on some devices, faster. Follows from `seed` alone.
Tensor random_tensor(const TensorType& type, std::uint64_t seed);

/// `count` images of such numbers, with labels of all classes.
ImageSet random_images(const VitConfig& model, std::int64_t count, std::uint64_t seed);

}  // namespace halfwatt

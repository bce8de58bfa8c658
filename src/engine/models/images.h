#pragma once

#include "base/result.h"
#include "engine/models/vit.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// Whether images of that type are some that the model takes: `dtype` [N, C, S, S], one at
/// least; f32, or u8 where it normalises them itself. Errors (bad_input): what they are and
/// what was needed.
Result<void> check_image_type(const VitConfig& model, const TensorType& images, DType dtype);

/// The same of images in f32 that are there, and whether all numbers are finite. Errors
/// (bad_input): as above; of a number that is not finite, the image and the place.
Result<void> check_images(const VitConfig& model, const TensorView& images);

}  // namespace halfwatt

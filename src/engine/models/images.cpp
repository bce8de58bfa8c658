#include "engine/models/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfwatt {

Result<void> check_image_type(const VitConfig& model, const TensorType& images, DType dtype) {
  const Shape& shape = images.shape;
  if (images.dtype == dtype && shape.rank() == 4 && shape[0] >= 1 &&
      shape.with(0, 1) == Shape{1, model.channels, model.image, model.image}) {
    return {};
  }
  return bad_input(fmt::format("images: {}; {} needs {} Nx{}x{}x{} of one image or more",
                               text(images), model.name, text(dtype), model.channels,
                               model.image, model.image));
}

Result<void> check_images(const VitConfig& model, const TensorView& images) {
  if (const auto fine = check_image_type(model, images.type, DType::f32); !fine) {
    return fine.error();
  }
  const auto numbers = images.as<float>();
  const auto bad = std::find_if(numbers.begin(), numbers.end(),
                                [](float number) { return !std::isfinite(number); });
  if (bad == numbers.end()) {
    return {};
  }
  const std::int64_t side = model.image;
  const std::int64_t one = model.channels * side * side;
  const std::int64_t place = (bad - numbers.begin()) % one;
  return bad_input(fmt::format(
      "images: image {} holds {} in channel {}, row {}, column {}; needed finite numbers",
      (bad - numbers.begin()) / one, *bad, place / (side * side), place / side % side,
      place % side));
}

}  // namespace halfwatt

#include "workloads/random_data.h"

#include <algorithm>

#include "base/rng.h"
#include "engine/tensor/convert.h"

namespace halfwatt {

Tensor random_tensor(const TensorType& type, std::uint64_t seed) {
  Rng rng(seed);
  Tensor wide(TensorType{DType::f32, type.shape});
  std::generate(wide.as<float>().begin(), wide.as<float>().end(),
                [&] { return static_cast<float>(rng.normal()); });
  if (type.dtype == DType::f32) {
    return wide;
  }
  Tensor tensor(type);
  convert(wide.view(), tensor.view());
  return tensor;
}

ImageSet random_images(const VitConfig& model, std::int64_t count, std::uint64_t seed) {
  ImageSet set;
  const Shape shape{count, model.channels, model.image, model.image};
  set.images = random_tensor({DType::f32, shape}, seed);
  set.classes = std::max<std::int64_t>(model.classes, 2);
  Rng rng(seed + 1);
  for (std::int64_t image = 0; image < count; ++image) {
    const double share = rng.uniform();
    set.labels.push_back(static_cast<std::int64_t>(share * static_cast<double>(set.classes)));
  }
  return set;
}

}  // namespace halfwatt

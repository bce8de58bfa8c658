#include "engine/models/initial.h"

#include <cmath>
#include <string_view>

#include "base/rng.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

Tensor initial_value(const StateSpec& parameter, std::uint64_t seed) {
  Tensor tensor(TensorType{DType::f32, parameter.type.shape});
  const auto values = tensor.as<float>();
  Rng rng(seed ^ fnv1a(parameter.name));
  const auto fill = [&](auto&& draw) {
    for (float& value : values) {
      value = static_cast<float>(draw());
    }
  };
  const std::string_view name = parameter.name;
  const Shape& shape = parameter.type.shape;
  if (name.find("patch_embed.proj") == 0) {
    // Of weight and bias alike 1 / sqrt(fan in); the bias does not tell its own.
    const double bound =
        shape.rank() == 4 ? 1 / std::sqrt(static_cast<double>(shape.elements() / shape[0])) : 0;
    fill([&] { return bound == 0 ? 0 : rng.uniform(-bound, bound); });
  } else if (name == "cls_token") {
    fill([&] { return 1e-6 * rng.normal(); });
  } else if (ends_with(name, ".bias")) {
    fill([] { return 0.0; });
  } else if (shape.rank() == 1) {
    fill([] { return 1.0; });
  } else {
    fill([&] { return 0.02 * rng.normal(); });
  }
  return tensor;
}

}  // namespace halfwatt

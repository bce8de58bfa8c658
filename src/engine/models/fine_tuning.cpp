#include "engine/models/fine_tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

// 0 for the embedding, then the blocks, the last of which has the norm behind it, then the
// head.
std::int64_t layer_of(const VitConfig& model, const std::string& parameter) {
  constexpr std::string_view kBlocks = "blocks.";
  if (parameter.starts_with(kBlocks)) {
    std::int64_t block = 0;
    std::from_chars(parameter.data() + kBlocks.size(), parameter.data() + parameter.size(),
                    block);
    return block + 1;
  }
  if (parameter.starts_with("norm.")) {
    return model.depth;
  }
  const bool is_embedding = parameter == "cls_token" || parameter == "pos_embed" ||
                            parameter.starts_with("patch_embed.");
  return is_embedding ? 0 : model.depth + 1;
}

// Which of the old numbers a new one is made of, and how much of each.
struct Window {
  std::int64_t first = 0;
  std::vector<float> weights;
};

// Keys (1981) with a = -0.5, as PyTorch and Pillow have it where they widen the kernel to what
// a smaller image leaves out. In f32, as PyTorch computes it.
float cubic(float x) {
  constexpr float kA = -0.5F;
  x = std::abs(x);
  if (x < 1) {
    return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  }
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

std::vector<Window> windows(std::int64_t from, std::int64_t to) {
  constexpr float kSupport = 2;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const float wider = std::max(scale, 1.0F);
  const float support = kSupport * wider;
  std::vector<Window> all;
  for (std::int64_t at = 0; at < to; ++at) {
    const float centre = scale * (static_cast<float>(at) + 0.5F);
    Window window;
    window.first =
        std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5F), 0);
    const auto end = std::min(static_cast<std::int64_t>(centre + support + 0.5F), from);
    float sum = 0;
    for (std::int64_t each = window.first; each < end; ++each) {
      const float away = static_cast<float>(each) - centre + 0.5F;
      window.weights.push_back(cubic(away / wider));
      sum += window.weights.back();
    }
    for (float& weight : window.weights) {
      weight /= sum;
    }
    all.push_back(std::move(window));
  }
  return all;
}

// Numbers as [outer, length, inner], of which `length` is to change.
struct Lines {
  std::int64_t outer, length, inner;
};

std::vector<float> resampled(const std::vector<float>& from,
                             const Lines& lines,
                             const std::vector<Window>& to) {
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(lines.outer * lines.inner) * to.size());
  for (std::int64_t outer = 0; outer < lines.outer; ++outer) {
    for (const Window& window : to) {
      for (std::int64_t inner = 0; inner < lines.inner; ++inner) {
        float sum = 0;
        for (std::size_t at = 0; at < window.weights.size(); ++at) {
          const std::int64_t place = window.first + static_cast<std::int64_t>(at);
          sum +=
              window.weights[at] * from[static_cast<std::size_t>(
                                       (outer * lines.length + place) * lines.inner + inner)];
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

}  // namespace

std::map<std::string, double, std::less<>> layer_rates(const VitConfig& model, double decay) {
  std::map<std::string, double, std::less<>> rates;
  for (const StateSpec& parameter : vit_parameters(model)) {
    const std::int64_t below = model.depth + 1 - layer_of(model, parameter.name);
    rates[parameter.name] = std::pow(decay, static_cast<double>(below));
  }
  return rates;
}

std::int64_t side_of(const Shape& positions) {
  if (positions.rank() != 3 || positions[0] != 1 || positions[1] < 2) {
    return 0;
  }
  const auto side =
      static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(positions[1] - 1))));
  return side * side == positions[1] - 1 ? side : 0;
}

Tensor resampled_positions(const TensorView& positions, std::int64_t side) {
  const std::int64_t old_side = side_of(positions.type.shape);
  HALFWATT_CHECK(old_side > 0 && side > 0, "positions of a square");
  const std::int64_t width = positions.type.shape[2];
  Tensor wide(TensorType{DType::f32, positions.type.shape});
  convert(positions, wide.view());
  const auto all = wide.as<float>();
  const std::vector<float> old(all.begin() + width, all.end());
  const std::vector<Window> to = windows(old_side, side);
  const std::vector<float> rows = resampled(old, {old_side, old_side, width}, to);
  const std::vector<float> grid = resampled(rows, {1, old_side, side * width}, to);
  Tensor result(TensorType{DType::f32, Shape{1, side * side + 1, width}});
  std::copy(grid.begin(), grid.end(),
            std::copy_n(all.begin(), width, result.as<float>().begin()));
  return result;
}

}  // namespace halfwatt

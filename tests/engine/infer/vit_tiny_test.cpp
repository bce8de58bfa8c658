// vit_tiny_patch16_224 against timm in fp64, on weights and images drawn as the golden's script
// draws them.

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/formats/folder.h"
#include "engine/formats/safetensors.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

bool is_norm_weight(std::string_view name) {
  return name.ends_with("norm.weight") || name.ends_with("norm1.weight") ||
         name.ends_with("norm2.weight");
}

Tensor drawn(Rng& rng, const Shape& shape, double deviation, double mean) {
  Tensor tensor(TensorType{DType::f32, shape});
  for (float& value : tensor.as<float>()) {
    value = static_cast<float>(rng.normal() * deviation + mean);
  }
  return tensor;
}

class VitTiny : public testing::Test {
 protected:
  VitTiny() : file_(*SafetensorsFile::open("tests/golden/engine/vit_tiny_logits.safetensors")) {
    Rng rng(2);
    images_ = drawn(rng, Shape{2, 3, 224, 224}, 1, 0);
    write_weights();
  }

  std::vector<double> golden(std::string_view name) const {
    return doubles(*file_.read(*file_.find(name)));
  }

  /// max |a - b| / max |b| of the logits in that mode.
  double error(std::string_view mode) {
    const auto backend = *open_cpu();
    InferRecipe recipe{*vit_named("vit_tiny_patch16_224"), *precision_named(mode), {}, 2};
    const auto inference = *Inference::open(recipe, *backend);
    EXPECT_TRUE(load_weights(folder_.path("weights"), inference->states()));
    const auto ours = doubles(*inference->logits(images_.view()));
    const auto theirs = golden("logits");
    EXPECT_EQ(ours.size(), theirs.size());
    double off = 0;
    double largest = 0;
    for (std::size_t at = 0; at < std::min(ours.size(), theirs.size()); ++at) {
      off = std::isfinite(ours[at]) ? std::max(off, std::abs(ours[at] - theirs[at])) : INFINITY;
      largest = std::max(largest, std::abs(theirs[at]));
    }
    return off / largest;
  }

 private:
  void write_weights() {
    const auto parameters = vit_parameters(*vit_named("vit_tiny_patch16_224"));
    std::vector<Tensor> weights;
    std::vector<NamedTensor> named;
    Rng rng(1);
    for (const StateSpec& each : parameters) {
      weights.push_back(drawn(rng, each.type.shape, 0.05, is_norm_weight(each.name) ? 1 : 0));
      named.push_back({each.name, weights.back().view()});
    }
    // First and last draws.
    EXPECT_EQ(weights.front().as<float>().front(), golden("weights")[0]);
    EXPECT_EQ(weights.back().as<float>().back(), golden("weights")[1]);
    EXPECT_TRUE(write_safetensors(folder_.path("weights"), named));
  }

  SafetensorsFile file_;
  Folder folder_;

 protected:
  Tensor images_;
};

TEST_F(VitTiny, draws_the_images_of_the_golden) {
  EXPECT_EQ(images_.as<float>().front(), golden("pixels")[0]);
  EXPECT_EQ(images_.as<float>().back(), golden("pixels")[1]);
}

TEST_F(VitTiny, has_the_logits_of_timm_in_fp64) { EXPECT_LT(error("fp64"), 1e-8); }

TEST_F(VitTiny, has_the_logits_of_timm_in_fp32) { EXPECT_LT(error("fp32"), 1e-5); }

// A number of the output has behind it, in each of the 12 blocks, ten values that were rounded
// to the format (two norms, qkv, attention, proj, fc1, gelu, fc2, two sums), and four outside
// of them (embedding, position, norm, head). Independent errors of half an ulp each, neither
// damped nor amplified on the way, add up as their root.
double bound(DType dtype) { return half_ulp(dtype) * std::sqrt(12 * 10 + 4); }

TEST_F(VitTiny, is_as_near_to_timm_as_the_format_allows_in_16_bits) {
  EXPECT_LT(error("bf16"), bound(DType::bf16));
  EXPECT_LT(error("amp-bf16"), bound(DType::bf16));
  EXPECT_LT(error("fp16"), bound(DType::f16));
  EXPECT_LT(error("amp-fp16"), bound(DType::f16));
}

}  // namespace
}  // namespace halfwatt

// Trained weights that answer in fp8 with the scales that a calibration found.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/formats/folder.h"
#include "engine/infer/calibration.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"
#include "engine/train/small_training.h"
#include "support/cosine.h"

namespace halfwatt {
namespace {

class Digits : public testing::Test {
 protected:
  Digits() {
    TrainRecipe quick = small_recipe("fp32");
    quick.optimizer.rate = 4e-3;
    SmallTraining training(quick);
    training.steps(some(set_, 0, 1280), 0, 600);
    EXPECT_LT(training.losses.back(), training.losses.front() / 2) << "it has learnt something";
    EXPECT_TRUE(save_weights(weights_, training.trainer->states()));
  }

  InferRecipe recipe(std::string_view mode) const {
    return {small_recipe("fp32").model, *precision_named(mode), {}, 32};
  }
  std::vector<double> logits(const InferRecipe& asked, const Tensor& images) {
    const auto backend = *open_cpu();
    const auto inference = *Inference::open(asked, *backend);
    EXPECT_TRUE(load_weights(weights_, inference->states()));
    const Tensor some = *inference->logits(images.view());
    Tensor wide(TensorType{DType::f64, some.shape()});
    convert(some.view(), wide.view());
    amax_ = largest_magnitudes(inference->states());
    const auto values = wide.as<double>();
    return {values.begin(), values.end()};
  }

  Folder folder_;
  std::filesystem::path weights_ = folder_.path("trained.safetensors");
  ImageSet set_ = digits();
  std::map<std::string, float, std::less<>> amax_;  ///< what the last inference saw
};

TEST_F(Digits, that_no_calibration_saw_are_answered_as_fp32_and_as_current_scaling_do) {
  const Tensor seen = some(set_, 0, 256).images;
  const Tensor unseen = some(set_, 1280, 256).images;  // nor has the training seen them
  InferRecipe calibrating = recipe("fp8");
  calibrating.calibrates = true;
  logits(calibrating, seen);
  InferRecipe fixed = recipe("fp8");
  fixed.scales.emplace();
  for (const auto& [operand, amax] : amax_) {
    (*fixed.scales)[operand] = 448 / amax;
  }
  const auto answers = logits(fixed, unseen);
  EXPECT_GE(cosine(answers, logits(recipe("fp32"), unseen)), 0.999);
  EXPECT_GE(cosine(answers, logits(recipe("fp8"), unseen)), 0.999);
}

}  // namespace
}  // namespace halfwatt

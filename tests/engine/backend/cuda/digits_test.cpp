// Handwritten digits on the GPU by the one recipe that all precisions have, and what fp8 makes
// of weights that were trained. bench/digits says the same of processors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "engine/backend/cuda/gpu.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"
#include "engine/train/recipe_file.h"

namespace halfwatt {
namespace {

RecipeFile digits_recipe() {
  auto file = read_recipe("data/digits.recipe.json");
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

/// All of precisions() but O0, which is fp32 under another name, O3, whose weights overflow
/// wherever they are trained, and fp64.
constexpr const char* kModes[] = {"fp32", "tf32",        "amp-fp16", "amp-bf16",
                                  "fp16", "bf16",        "fp16-sr",  "bf16-sr",
                                  "fp8",  "fp8-delayed", "O1",       "O2"};

class Digits : public OnGpu, public testing::WithParamInterface<const char*> {};

// One picture is 0.28 %, and one seed of forty is a picture short of 97 % on processors: what
// the recipe promises is of the mean of three.
TEST_P(Digits, are_read_as_well_as_a_person_would_want) {
  const RecipeFile file = digits_recipe();
  const auto gpu = opened_gpu();
  double sum = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto trained = train_by(file, *precision_named(GetParam()), seed, *gpu);
    ASSERT_TRUE(trained) << trained.error().message;
    EXPECT_EQ(trained->last.state, NumericalState::live)
        << "seed " << seed << ": " << trained->last.reason;
    const double share = static_cast<double>(trained->evaluation.right) /
                         static_cast<double>(trained->evaluation.images);
    std::printf("%s, seed %d: %.4f read right\n", GetParam(), static_cast<int>(seed), share);
    sum += share;
  }
  EXPECT_GE(sum / 3, 0.97);
}

INSTANTIATE_TEST_SUITE_P(InMode, Digits, testing::ValuesIn(kModes), [](const auto& mode) {
  std::string name = mode.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// A model that was trained in fp32, in a file, and the pictures that it has not seen.
class TrainedDigits : public OnGpu {
 protected:
  void train() {
    const RecipeFile file = digits_recipe();
    const auto all = read_pixel_csv(file.pixels, file.format);
    ASSERT_TRUE(all) << all.error().message;
    const Split split = stratified(*all, file.held_out, file.split_seed);
    held_out_ = all->at(split.held_out);
    recipe_ = file.recipe;
    recipe_.precision = *precision_named("fp32");
    constexpr std::int64_t kEpochs = 40;
    const std::int64_t steps = static_cast<std::int64_t>(split.train.size()) / recipe_.batch;
    recipe_.optimizer.total = steps * kEpochs;
    gpu_ = opened_gpu();
    const auto trainer = std::move(*Trainer::open(recipe_, *gpu_));
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const auto order = shuffled(static_cast<std::int64_t>(split.train.size()), 1, epoch);
      for (std::int64_t step = 0; step < steps; ++step) {
        std::vector<std::int64_t> places;
        for (std::int64_t at = step * recipe_.batch; at < (step + 1) * recipe_.batch; ++at) {
          places.push_back(
              split.train[static_cast<std::size_t>(order[static_cast<std::size_t>(at)])]);
        }
        ASSERT_TRUE(trainer->step(all->at(places)));
      }
    }
    ASSERT_EQ(trainer->state(), NumericalState::live);
    ASSERT_TRUE(save_weights(weights_, trainer->states()));
  }

  /// [pictures][classes]
  std::vector<std::vector<double>> logits(std::string_view mode) {
    const auto inference =
        std::move(*Inference::open({recipe_.model, *precision_named(mode), {}, 32}, *gpu_));
    EXPECT_TRUE(load_weights(weights_, inference->states()));
    const auto stored = inference->logits(held_out_.images.view());
    EXPECT_TRUE(stored) << stored.error().message;
    Tensor wide(TensorType{DType::f64, stored->shape()});
    convert(stored->view(), wide.view());
    const auto numbers = wide.as<double>();
    std::vector<std::vector<double>> rows;
    const auto classes = static_cast<std::ptrdiff_t>(recipe_.model.classes);
    for (auto at = numbers.begin(); at != numbers.end(); at += classes) {
      rows.emplace_back(at, at + classes);
    }
    return rows;
  }

 private:
  const std::string weights_ = testing::TempDir() + "digits.safetensors";
  std::unique_ptr<Backend> gpu_;
  TrainRecipe recipe_;
  ImageSet held_out_;
};

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t at = 0; at < a.size(); ++at) {
    ab += a[at] * b[at];
    aa += a[at] * a[at];
    bb += b[at] * b[at];
  }
  return ab / std::sqrt(aa * bb);
}

TEST_F(TrainedDigits, are_the_same_digits_in_fp8) {
  ASSERT_NO_FATAL_FAILURE(train());
  const auto wanted = logits("fp32");
  const auto got = logits("fp8");
  ASSERT_EQ(got.size(), wanted.size());
  double sum = 0;
  double least = 1;
  double same = 0;
  const auto answer = [](const std::vector<double>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const double each = cosine(got[at], wanted[at]);
    sum += each;
    least = std::min(least, each);
    same += answer(got[at]) == answer(wanted[at]) ? 1 : 0;
  }
  const auto pictures = static_cast<double>(wanted.size());
  std::printf("cosine of logits: mean %.5f, least %.5f; the same answer: %.4f\n",
              sum / pictures, least, same / pictures);
  EXPECT_GE(sum / pictures, 0.999);
  EXPECT_GE(same / pictures, 0.98);
}

}  // namespace
}  // namespace halfwatt

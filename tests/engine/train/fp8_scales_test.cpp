// Scales of fp8-delayed from a training to a file, and from there to an inference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/formats/folder.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"
#include "engine/train/trainer.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kBatch = 8;
const std::string kOperand = "blocks.0.mlp.fc1.input";

TrainRecipe recipe(std::string_view mode = "fp8-delayed") {
  TrainRecipe all;
  all.model = *vit_named("vit_micro_patch4_8");
  all.model.classes = 4;
  all.precision = *precision_named(mode);
  all.batch = kBatch;
  return all;
}

ImageSet images() {
  ImageSet set;
  set.classes = 4;
  Rng rng(5);
  std::vector<float> pixels(static_cast<std::size_t>(kBatch * 3 * 8 * 8));
  for (float& pixel : pixels) {
    pixel = static_cast<float>(rng.normal());
  }
  for (std::int64_t image = 0; image < kBatch; ++image) {
    set.labels.push_back(image % 4);
  }
  set.images = Tensor::of<float>(DType::f32, Shape{kBatch, 3, 8, 8}, pixels);
  return set;
}

struct Training {
  explicit Training(std::string_view mode = "fp8-delayed") : backend(*open_cpu()) {
    auto opened = Trainer::open(recipe(mode), *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    trainer = std::move(*opened);
  }
  StepReport step() { return std::move(*trainer->step(images())); }
  float scale() const { return trainer->states().save(kOperand + ".fp8_scale").as<float>()[0]; }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Trainer> trainer;
};

struct Answering {
  explicit Answering(std::string_view mode) : backend(*open_cpu()) {
    auto opened =
        Inference::open({recipe().model, *precision_named(mode), {}, kBatch}, *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    inference = std::move(*opened);
  }
  std::vector<double> logits() {
    const Tensor some = std::move(*inference->logits(images().images.view()));
    Tensor wide(TensorType{DType::f64, some.shape()});
    convert(some.view(), wide.view());
    const auto values = wide.as<double>();
    return {values.begin(), values.end()};
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Inference> inference;
};

TEST(Fp8Scales, move_with_a_training_that_is_live_and_warns_of_nothing) {
  Training training;
  const double first = training.step().loss;
  StepReport last;
  for (int step = 0; step < 30; ++step) {
    last = training.step();
    EXPECT_TRUE(last.warnings.empty()) << last.warnings.front();
  }
  EXPECT_EQ(last.state, NumericalState::live) << last.reason;
  EXPECT_LT(last.loss, first / 2);
  EXPECT_NE(training.scale(), 1);
}

TEST(Fp8Scales, that_an_infinity_holds_are_warned_about) {
  Training training;
  training.step();
  const float before = training.scale();
  Tensor history = training.trainer->states().save(kOperand + ".fp8_amax");
  history.as<float>()[0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(training.trainer->states().load(kOperand + ".fp8_amax", history.view()));
  const StepReport report = training.step();
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0],
            "the largest magnitude of blocks.0.mlp.fc1.input is inf: its fp8 scale stays as it "
            "is for up to 1024 steps");
  EXPECT_EQ(training.scale(), before);
}

TEST(Fp8Scales, are_in_the_file_of_the_weights_and_an_inference_takes_them_from_there) {
  const Folder folder;
  const auto file = folder.path("trained.safetensors");
  Training training;
  for (int step = 0; step < 5; ++step) {
    training.step();
  }
  ASSERT_TRUE(save_weights(file, training.trainer->states()));
  Answering fp8("fp8-delayed");
  Answering exact("fp32");
  for (Answering* each : {&fp8, &exact}) {
    const auto loaded = load_weights(file, each->inference->states());
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
  EXPECT_EQ(fp8.inference->states().save(kOperand + ".fp8_scale").as<float>()[0],
            training.scale());
  const std::vector<double> logits = fp8.logits();
  const std::vector<double> wanted = exact.logits();
  double largest = 0;
  double off = 0;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    largest = std::max(largest, std::abs(wanted[at]));
    off = std::max(off, std::abs(wanted[at] - logits[at]));
  }
  // Some layers of operands with three bits of mantissa: a part in 16 each.
  EXPECT_LT(off, 0.2 * largest);
  EXPECT_GT(off, 0);
  Training resumed;
  ASSERT_TRUE(load_weights(file, resumed.trainer->states()));
  EXPECT_EQ(resumed.scale(), training.scale());
}

TEST(Fp8Scales, that_a_file_has_not_are_named_by_an_inference_and_found_by_a_training) {
  const Folder folder;
  const auto file = folder.path("plain.safetensors");
  Training plain("fp32");
  ASSERT_TRUE(save_weights(file, plain.trainer->states()));
  Answering fp8("fp8-delayed");
  const auto refused = load_weights(file, fp8.inference->states());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
  // Four layers in each of two blocks, the scales of input and weight.
  for (const char* said : {"16 fp8 scales are missing (blocks.0.attn.proj.input.fp8_scale",
                           "a training in fp8-delayed", "--precision fp8 needs none"}) {
    EXPECT_NE(refused.error().message.find(said), std::string::npos) << refused.error().message;
  }
  Training training;
  ASSERT_TRUE(load_weights(file, training.trainer->states()));
  EXPECT_EQ(training.scale(), 1);
}

TEST(Fp8Scales, that_are_no_positive_numbers_are_refused) {
  const Folder folder;
  const auto file = folder.path("bad.safetensors");
  Training training;
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> value = {bad};
    ASSERT_TRUE(training.trainer->states().load(
        kOperand + ".fp8_scale", Tensor::of<float>(DType::f32, Shape(), value).view()));
    ASSERT_TRUE(save_weights(file, training.trainer->states()));
    Answering fp8("fp8-delayed");
    const auto refused = load_weights(file, fp8.inference->states());
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find("fc1.input.fp8_scale is"), std::string::npos)
        << refused.error().message;
  }
}

}  // namespace
}  // namespace halfwatt

#include "engine/infer/inference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/models/images.h"
#include "engine/models/weights.h"
#include "support/forwarding_backend.h"

namespace halfwatt {
namespace {

VitConfig micro() {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.classes = 10;
  return config;
}

constexpr std::int64_t kPixels = 3 * 16 * 16;

Tensor random_images(std::int64_t count) {
  Tensor images(TensorType{DType::f32, Shape{count, 3, 16, 16}});
  Rng rng(3);
  for (float& value : images.as<float>()) {
    value = static_cast<float>(rng.normal());
  }
  return images;
}

Tensor picked(const Tensor& images, const std::vector<std::int64_t>& places) {
  Tensor some(
      TensorType{DType::f32, images.shape().with(0, static_cast<std::int64_t>(places.size()))});
  for (std::size_t at = 0; at < places.size(); ++at) {
    std::copy_n(images.as<float>().data() + places[at] * kPixels, kPixels,
                some.as<float>().data() + static_cast<std::int64_t>(at) * kPixels);
  }
  return some;
}

struct Model {
  explicit Model(std::string_view mode, std::int64_t batch = 5, VitConfig config = micro())
      : Model(InferRecipe{std::move(config), *precision_named(mode), {}, batch}) {}
  Model(std::string_view mode, const Normalisation& by)
      : Model(InferRecipe{micro(), *precision_named(mode), {}, 5, {}, false, by}) {}
  explicit Model(const InferRecipe& recipe) : backend(*open_cpu({"cpu", 2})) {
    auto opened = Inference::open(recipe, *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    inference = std::move(*opened);
    draw_weights(inference->states(), 5);
  }
  Tensor logits(const Tensor& images) { return std::move(*inference->logits(images.view())); }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Inference> inference;
};

TEST(Inference, has_the_same_logits_of_bytes_as_of_their_numbers) {
  const Normalisation by = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const Shape shape{7, 3, 16, 16};
  Tensor bytes(TensorType{DType::u8, shape});
  Tensor numbers(TensorType{DType::f32, shape});
  Rng rng(3);
  for (std::size_t at = 0; at < bytes.as<std::uint8_t>().size(); ++at) {
    const auto value = static_cast<std::uint8_t>(rng.next());
    const std::size_t channel = at / 256 % 3;
    bytes.as<std::uint8_t>()[at] = value;
    numbers.as<float>()[at] = normalised(value, by.mean[channel], by.deviation[channel]);
  }
  for (const Precision& precision : precisions()) {
    Model of_numbers(precision.name);
    Model of_bytes(precision.name, by);
    const Tensor wanted = of_numbers.logits(numbers);
    const Tensor got = of_bytes.logits(bytes);
    EXPECT_TRUE(std::ranges::equal(got.view().bytes(), wanted.view().bytes()))
        << precision.name;
  }
}

std::vector<std::byte> row(const Tensor& logits, std::int64_t at) {
  const std::size_t each = logits.type().bytes() / static_cast<std::size_t>(logits.shape()[0]);
  const std::byte* begin = logits.view().data + static_cast<std::size_t>(at) * each;
  return {begin, begin + each};
}

class EachMode : public testing::TestWithParam<const char*> {};

TEST_P(EachMode, gives_an_image_the_same_bits_alone_as_beside_others_and_at_any_place) {
  for (const auto pool : {VitConfig::Pool::token, VitConfig::Pool::mean}) {
    VitConfig config = micro();
    config.pool = pool;
    Model model(GetParam(), 5, config);
    const Tensor images = random_images(12);
    const Tensor together = model.logits(images);
    EXPECT_EQ(together.shape(), (Shape{12, 10}));
    std::vector<std::int64_t> places(12);
    std::iota(places.begin(), places.end(), 0);
    for (int turn = 0; turn < 4; ++turn) {
      std::rotate(places.begin(), places.begin() + 7, places.end());
      std::reverse(places.begin() + turn, places.end());
      const Tensor moved = model.logits(picked(images, places));
      for (std::size_t at = 0; at < places.size(); ++at) {
        EXPECT_EQ(row(moved, static_cast<std::int64_t>(at)), row(together, places[at]))
            << GetParam() << ": image " << places[at] << " at place " << at;
      }
    }
    for (std::int64_t image = 0; image < 12; ++image) {
      EXPECT_EQ(row(model.logits(picked(images, {image})), 0), row(together, image))
          << GetParam() << ": image " << image << " alone";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Inference,
    EachMode,
    testing::Values(
        "fp64", "fp32", "tf32", "bf16", "amp-bf16", "fp16", "amp-fp16", "O2", "fp8-delayed"));

TEST(Inference, of_the_last_images_is_not_changed_by_what_fills_the_batch) {
  // fp8 scales by the largest number of the batch, so padding with anything else would show.
  Model model("fp8", 4);
  const Tensor two = random_images(2);
  const Tensor filled = picked(two, {0, 1, 1, 1});
  EXPECT_EQ(row(model.logits(two), 0), row(model.logits(filled), 0));
  EXPECT_EQ(model.logits(two).shape(), (Shape{2, 10}));
}

TEST(Inference, computes_with_the_weights_that_were_loaded_in_every_mode) {
  for (const Precision& precision : precisions()) {
    Model model(precision.name);
    const Tensor images = random_images(1);
    const Tensor before = model.logits(images);
    draw_weights(model.inference->states(), 6);
    EXPECT_NE(row(model.logits(images), 0), row(before, 0)) << precision.name;
  }
}

TEST(Inference, says_which_modes_this_device_only_emulates) {
  for (const auto mode : {"fp64", "fp32", "bf16", "amp-bf16"}) {
    EXPECT_FALSE(Model(mode).inference->is_emulated()) << mode;
  }
  for (const auto mode : {"tf32", "fp16", "amp-fp16", "fp8", "fp8-delayed", "O2", "O3"}) {
    EXPECT_TRUE(Model(mode).inference->is_emulated()) << mode;
  }
}

TEST(Inference, that_may_add_up_in_fp16_adds_up_in_fp32_on_the_cpu) {
  const Tensor images = random_images(2);
  const std::string words = "param=fp16,compute=fp16,output=fp16";
  EXPECT_EQ(row(Model(words + ",accumulate=fp16").logits(images), 1),
            row(Model(words).logits(images), 1));
}

/// A device with another memory.
class SmallBackend final : public ForwardingBackend {
 public:
  explicit SmallBackend(double bytes)
      : ForwardingBackend(*open_cpu({"cpu", 1})), target_(ForwardingBackend::target()) {
    target_.memory = Bytes(bytes);
  }
  const Target& target() const override { return target_; }

 private:
  Target target_;
};

TEST(Inference, that_does_not_fit_is_refused_with_the_batch_that_does) {
  for (const auto mode : {"fp32", "O2"}) {
    InferRecipe recipe{micro(), *precision_named(mode), {}, 4};
    SmallBackend roomy(1e9);
    ASSERT_TRUE(Inference::open(recipe, roomy));
    const auto held = [&] {
      const auto inference = *Inference::open(recipe, roomy);
      return static_cast<double>(roomy.allocated());
    }();
    SmallBackend exact(held);
    EXPECT_TRUE(Inference::open(recipe, exact)) << "what is promised is what is allocated";
    recipe.batch = 64;
    const auto refused = Inference::open(recipe, exact);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
    EXPECT_NE(refused.error().message.find("--batch 4 would"), std::string::npos)
        << refused.error().message;
  }
  SmallBackend tiny(1000);
  const auto refused = Inference::open({micro(), *precision_named("fp32"), {}, 4}, tiny);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no batch does"), std::string::npos)
      << refused.error().message;
}

TEST(Inference, refuses_an_override_that_matches_no_layer) {
  const auto backend = *open_cpu();
  const auto refused = Inference::open(
      {micro(), *precision_named("bf16"), {*precision_override("tail.*=fp32")}, 1}, *backend);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--override tail.*"), std::string::npos);
}

std::string refusal(const Tensor& images) {
  const auto good = check_images(micro(), images.view());
  return good ? "" : good.error().message;
}

TEST(Images, of_numbers_that_are_not_finite_are_refused_by_their_place) {
  Tensor images = random_images(3);
  EXPECT_EQ(refusal(images), "");
  images.as<float>()[2 * kPixels + 256 + 5 * 16 + 7] = NAN;
  EXPECT_EQ(refusal(images),
            "images: image 2 holds nan in channel 1, row 5, column 7; needed finite numbers");
  images.as<float>()[kPixels - 1] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      refusal(images),
      "images: image 0 holds -inf in channel 2, row 15, column 15; needed finite numbers");
}

TEST(Images, of_another_type_are_refused_with_what_the_model_takes) {
  EXPECT_EQ(
      refusal(Tensor(TensorType{DType::f32, Shape{2, 3, 16, 8}})),
      "images: f32 2x3x16x8; vit_micro_patch4_16 needs f32 Nx3x16x16 of one image or more");
  EXPECT_NE(refusal(Tensor(TensorType{DType::f32, Shape{0, 3, 16, 16}})), "");
  EXPECT_NE(refusal(Tensor(TensorType{DType::f32, Shape{3, 16, 16}})), "");
  EXPECT_NE(refusal(Tensor(TensorType{DType::f16, Shape{1, 3, 16, 16}})), "");
}

}  // namespace
}  // namespace halfwatt

// From images to a file of scales, and from there to an inference in fp8.

#include "engine/infer/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/formats/folder.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/tensor/convert.h"
#include "support/cosine.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kImages = 12;
constexpr const char* kOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kOperand = "blocks.0.mlp.fc1.input";

Tensor random_images(std::uint64_t seed) {
  Tensor images(TensorType{DType::f32, Shape{kImages, 3, 16, 16}});
  Rng rng(seed);
  for (float& value : images.as<float>()) {
    value = static_cast<float>(rng.normal());
  }
  return images;
}

Tensor image(const Tensor& all, std::int64_t at) {
  return rows_as(all.view(), at, {DType::f32, all.shape().with(0, 1)});
}

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

InferRecipe recipe(std::string_view mode) {
  InferRecipe all;
  all.model = *vit_named("vit_micro_patch4_16");
  all.model.classes = 10;
  all.precision = *precision_named(mode);
  all.batch = 4;
  return all;
}

struct Model {
  explicit Model(const InferRecipe& recipe) : backend(*open_cpu({"cpu", 2})) {
    auto opened = Inference::open(recipe, *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    inference = std::move(*opened);
    draw_weights(inference->states(), 5);
  }
  std::vector<double> logits(const Tensor& images) {
    return doubles(*inference->logits(images.view()));
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Inference> inference;
};

/// What is seen of some images.
Calibration calibrated(const Tensor& images) {
  InferRecipe asked = recipe("fp8");
  asked.calibrates = true;
  Model model(asked);
  model.logits(images);
  return {"vit_micro_patch4_16", "w",          "",
          images.shape()[0],     "2026-12-01", largest_magnitudes(model.inference->states())};
}

/// A file that stands for weights, and scales for it.
struct Files {
  Files() {
    Calibration seen = calibrated(random_images(3));
    seen.sha256 = kOfAbc;
    EXPECT_TRUE(write_calibration(scales, seen));
  }
  Result<Fp8Scales> read(std::string_view model = "vit_micro_patch4_16") const {
    return read_scales(scales, model, weights);
  }
  /// Of a file in which `from` is `to`.
  std::string refusal(const std::string& from, const std::string& to) const {
    std::string text = read_file(scales);
    const std::size_t where = text.find(from);
    EXPECT_NE(where, std::string::npos) << from;
    const auto changed = folder.write("changed", text.replace(where, from.size(), to));
    const auto refused = read_scales(changed, "vit_micro_patch4_16", weights);
    if (refused) {
      return "taken";
    }
    EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
    return refused.error().message;
  }

  Folder folder;
  std::filesystem::path weights = folder.write("w", "abc");
  std::filesystem::path scales = folder.path("scales.json");
};

TEST(Calibration, sees_both_operands_of_every_product_of_the_blocks) {
  const Calibration seen = calibrated(random_images(3));
  EXPECT_EQ(seen.amax.size(), 2U * 4 * 2);
  for (const auto& [operand, amax] : seen.amax) {
    EXPECT_TRUE(std::isfinite(amax) && amax > 0) << operand << ' ' << amax;
  }
  EXPECT_TRUE(seen.amax.contains(kOperand));
  EXPECT_TRUE(seen.amax.contains("blocks.1.attn.qkv.weight"));
}

TEST(Calibration, keeps_the_largest_of_all_batches) {
  const Tensor images = random_images(3);
  Tensor louder = random_images(4);
  for (float& value : louder.as<float>()) {
    value *= 3;
  }
  Tensor both(TensorType{DType::f32, Shape{2 * kImages, 3, 16, 16}});
  std::copy_n(louder.as<float>().data(), louder.as<float>().size(), both.as<float>().data());
  std::copy_n(images.as<float>().data(), images.as<float>().size(),
              both.as<float>().data() + louder.as<float>().size());
  const auto one = calibrated(images).amax;
  const auto other = calibrated(louder).amax;
  for (const auto& [operand, amax] : calibrated(both).amax) {
    EXPECT_EQ(amax, std::max(one.at(operand), other.at(operand))) << operand;
  }
}

TEST(Calibration, changes_no_logit_of_what_it_looks_at) {
  const Tensor images = random_images(3);
  InferRecipe asked = recipe("fp8");
  asked.calibrates = true;
  EXPECT_EQ(Model(asked).logits(images), Model(recipe("fp8")).logits(images));
}

TEST(Calibration, makes_the_largest_number_of_the_format_of_what_was_seen) {
  const Files files;
  const auto scales = files.read();
  ASSERT_TRUE(scales) << scales.error().message;
  for (const auto& [operand, amax] : calibrated(random_images(3)).amax) {
    EXPECT_EQ(scales->at(operand), 448 / amax) << operand;
  }
}

TEST(Calibration, gives_an_operand_of_zeros_the_scale_1) {
  const Files files;
  Calibration seen = calibrated(random_images(3));
  seen.sha256 = kOfAbc;
  seen.amax[kOperand] = 0;
  ASSERT_TRUE(write_calibration(files.scales, seen));
  EXPECT_EQ(files.read()->at(kOperand), 1);
}

TEST(Calibration, is_the_same_file_of_the_same_images) {
  const Files one;
  const Files other;
  EXPECT_EQ(read_file(one.scales), read_file(other.scales));
  EXPECT_NE(read_file(one.scales).find("\"schema\": \"halfwatt.scales/1\""), std::string::npos);
}

TEST(FixedScales, answer_as_fp32_and_as_fp8_that_looks_at_every_operand) {
  const Files files;
  const Tensor unseen = random_images(9);
  InferRecipe fixed = recipe("fp8");
  fixed.scales = *files.read();
  const auto logits = Model(fixed).logits(unseen);
  const auto current = Model(recipe("fp8")).logits(unseen);
  const auto exact = Model(recipe("fp32")).logits(unseen);
  EXPECT_GE(cosine(logits, current), 0.999);
  EXPECT_GE(cosine(logits, exact), 0.999);
  EXPECT_NE(logits, current);
}

TEST(FixedScales, give_an_image_the_same_bits_alone_as_beside_others) {
  const Files files;
  InferRecipe fixed = recipe("fp8");
  fixed.scales = *files.read();
  Model model(fixed);
  const Tensor images = random_images(9);
  const auto together = model.logits(images);
  for (std::int64_t at = 0; at < kImages; ++at) {
    EXPECT_EQ(model.logits(image(images, at)),
              std::vector<double>(together.begin() + 10 * at, together.begin() + 10 * at + 10))
        << at;
  }
}

TEST(FixedScales, leave_no_product_that_looks_for_magnitudes) {
  const Files files;
  InferRecipe fixed = recipe("fp8");
  fixed.scales = *files.read();
  for (const InferRecipe& asked : {fixed, recipe("fp8"), recipe("fp8-delayed")}) {
    const auto plan = inference_plan(asked, (*open_cpu())->target());
    ASSERT_TRUE(plan) << plan.error().message;
    for (const Node& node : plan->graph.nodes()) {
      EXPECT_FALSE(node.attributes.has("observe")) << node.name;
    }
  }
}

TEST(FixedScales, that_are_not_there_are_named) {
  const Files files;
  InferRecipe fixed = recipe("fp8");
  fixed.scales = *files.read();
  fixed.scales->erase(kOperand);
  const auto backend = *open_cpu();
  const auto refused = Inference::open(fixed, *backend);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
  EXPECT_EQ(refused.error().message.find("--scales: no scale of " + kOperand + ";"), 0U)
      << refused.error().message;
  fixed.scales->clear();
  EXPECT_NE(Inference::open(fixed, *backend).error().message.find(" and 15 more operands"),
            std::string::npos);
  fixed.overrides = {*precision_override("blocks.*=amp-bf16")};
  EXPECT_TRUE(Inference::open(fixed, *backend)) << "nothing is fp8 that needs one";
}

TEST(FileOfScales, of_another_model_or_of_other_weights_is_refused) {
  const Files files;
  const auto other_model = files.read("vit_tiny_patch16_224");
  ASSERT_FALSE(other_model);
  EXPECT_NE(other_model.error().message.find("scales of the model \"vit_micro_patch4_16\", "
                                             "needed those of vit_tiny_patch16_224"),
            std::string::npos)
      << other_model.error().message;
  const Files changed;
  changed.folder.write("w", "abd");
  const auto other_weights = changed.read();
  ASSERT_FALSE(other_weights);
  for (const char* said : {"scales of other weights: of \"w\" with the sha256 \"ba7816bf",
                           ", which has a52d159f"}) {
    EXPECT_NE(other_weights.error().message.find(said), std::string::npos)
        << other_weights.error().message;
  }
}

TEST(FileOfScales, that_holds_something_else_is_refused_in_one_line) {
  const Files files;
  EXPECT_NE(files.refusal("scales/1", "infer/1").find("no scales; needed JSON of the schema"),
            std::string::npos);
  EXPECT_NE(files.refusal("{", "[").find("no scales"), std::string::npos);
  EXPECT_NE(files.refusal("\"layers\"", "\"others\"").find("no scales"), std::string::npos);
  EXPECT_NE(files.refusal("\"amax\": ", "\"amax\": null, \"was\": ")
                .find("the amax of \"blocks.0.attn.proj.input\" is null, needed a finite "
                      "number of 0 or more"),
            std::string::npos);
  EXPECT_NE(files.refusal("\"amax\": ", "\"amax\": 1e300, \"was\": ").find("is 1e+300"),
            std::string::npos);
  EXPECT_NE(files.refusal("\"amax\": ", "\"amax\": 1e999, \"was\": ").find("no scales"),
            std::string::npos)
      << "no number of JSON";
  for (const char* scale : {"0", "-1", "\"inf\"", "null"}) {
    EXPECT_NE(files.refusal("\"scale\": ", std::string("\"scale\": ") + scale + ", \"was\": ")
                  .find("the scale of \"blocks.0.attn.proj.input\" is " + std::string(scale) +
                        ", needed a finite number over 0"),
              std::string::npos)
        << scale;
  }
  EXPECT_FALSE(read_scales(files.folder.path("none"), "vit_micro_patch4_16", files.weights));
}

}  // namespace
}  // namespace halfwatt

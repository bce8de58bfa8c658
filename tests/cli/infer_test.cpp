// `halfwatt infer` on small models: what it prints, what it writes, and how it ends.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "engine/formats/safetensors.h"
#include "engine/models/vit.h"
#include "support/pictures.h"

namespace halfwatt {
namespace {

using nlohmann::json;

const std::string kMicro = "infer --model vit_micro_patch4_16 --classes 10 ";

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(TensorType{DType::f32, shape});
  const auto all = tensor.as<float>();
  std::fill(all.begin(), all.end(), value);
  return tensor;
}

void write(const std::string& path, const std::string& name, const Tensor& tensor) {
  const NamedTensor named{name, tensor.view()};
  ASSERT_TRUE(write_safetensors(path, {&named, 1}));
}

/// Weights of which only the head's bias is not 0: class c has logit c.
void write_weights(const std::string& path,
                   float scale = 1,
                   const std::string& leave_out = "",
                   const std::map<std::string, std::string>& metadata = {}) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.classes = 10;
  const auto parameters = vit_parameters(config);
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const StateSpec& spec : parameters) {
    tensors.push_back(filled(spec.type.shape, 0));
    if (spec.name == "head.bias") {
      for (int at = 0; at < 10; ++at) {
        tensors.back().as<float>()[static_cast<std::size_t>(at)] =
            scale * static_cast<float>(at);
      }
    }
    if (spec.name != leave_out) {
      named.push_back({spec.name, tensors.back().view()});
    }
  }
  ASSERT_TRUE(write_safetensors(path, named, metadata));
}

TEST(Infer, computes_bf16_where_the_library_has_no_product_of_it) {
  const Outcome outcome = run_program(
      "infer --model vit_micro_patch4_16 --input synthetic:1 --precision bf16 --top 1",
      "ONEDNN_MAX_CPU_ISA=AVX2");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("live"), std::string::npos) << outcome.out;
}

TEST(Infer, lists_the_likeliest_classes_first) {
  const Folder folder;
  write_weights(folder.path("w"));
  write(folder.path("i"), "images", filled(Shape{2, 3, 16, 16}, 0.5F));
  const Outcome outcome = run_program(kMicro + "--weights " + folder.path("w") + " --input " +
                                      folder.path("i") + " --top 2 --format json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto told = json::parse(outcome.out);
  EXPECT_EQ(told["schema"], "halfwatt.infer/1");
  EXPECT_EQ(told["numerical_state"], "live");
  EXPECT_EQ(told["emulated"], false);
  ASSERT_EQ(told["images"].size(), 2U);
  for (const auto& image : told["images"]) {
    ASSERT_EQ(image["top"].size(), 2U);
    EXPECT_EQ(image["top"][0]["class"], 9);
    EXPECT_EQ(image["top"][0]["logit"], 9.0);
    EXPECT_EQ(image["top"][1]["class"], 8);
    // 1 + 1/e + 1/e^2 + ...
    EXPECT_NEAR(image["top"][0]["probability"].get<double>(),
                (1 - std::exp(-1)) / (1 - std::exp(-10)), 1e-12);
  }
}

TEST(Infer, says_the_same_in_a_table_and_to_a_script) {
  const Folder folder;
  write_weights(folder.path("w"));
  const std::string words = kMicro + "--weights " + folder.path("w") + " --input synthetic:1";
  const Outcome table = run_program(words + " --top 1");
  EXPECT_NE(table.out.find("vit_micro_patch4_16 in fp32"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("0.6321"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("live"), std::string::npos) << table.out;
  const Outcome csv = run_program(words + " --top 1 --format csv");
  EXPECT_EQ(csv.out.substr(0, csv.out.find('\n')),
            "image,rank,class,logit,probability,state,precision,emulated,name");
  EXPECT_NE(csv.out.find("\n0,1,9,9,0.632"), std::string::npos) << csv.out;
  EXPECT_NE(csv.out.find(",live,\"fp32\",false,\n"), std::string::npos) << csv.out;
}

TEST(Infer, calls_classes_by_the_names_that_the_weights_have) {
  const Folder folder;
  const std::string names = R"(["a","b","c","d","e","f","g","h","i","wet, \"dog\""])";
  write_weights(folder.path("w"), 1, "", {{"classes", names}});
  const std::string words =
      kMicro + "--weights " + folder.path("w") + " --input synthetic:1 --top 2";
  const Outcome table = run_program(words);
  EXPECT_NE(table.out.find("wet, \"dog\"  "), std::string::npos) << table.out;
  const Outcome csv = run_program(words + " --format csv");
  EXPECT_NE(csv.out.find("\n0,2,8,8,0.232"), std::string::npos) << csv.out;
  EXPECT_NE(csv.out.find(",false,\"i\"\n"), std::string::npos) << csv.out;
  const auto told = json::parse(run_program(words + " --format json").out);
  EXPECT_EQ(told["images"][0]["top"][0]["class"], 9);
  EXPECT_EQ(told["images"][0]["top"][0]["name"], "wet, \"dog\"");
  write_weights(folder.path("w"), 1, "", {{"classes", R"(["a","b"])"}});
  const auto nameless = json::parse(run_program(words + " --format json").out);
  EXPECT_EQ(nameless["images"][0]["top"][0]["name"], nullptr) << "names of something else";
}

TEST(Infer, without_weights_says_so_and_follows_from_the_seed) {
  const std::string words = kMicro + "--input synthetic:3 --format csv";
  const Outcome one = run_program(words + " --seed 4");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.err.find("no --weights: they are drawn from seed 4"), std::string::npos);
  EXPECT_EQ(one.out, run_program(words + " --seed 4").out);
  EXPECT_NE(one.out, run_program(words + " --seed 5").out);
}

TEST(Infer, labels_what_this_device_emulates) {
  const std::string words = kMicro + "--input synthetic:1 ";
  for (const char* mode : {"fp16", "amp-fp16", "fp16-sr", "tf32", "fp8", "fp8-delayed"}) {
    const Outcome outcome = run_program(words + "--precision " + mode);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("emulated: "), std::string::npos) << mode << outcome.out;
    const Outcome csv = run_program(words + "--format csv --precision " + mode);
    EXPECT_NE(csv.out.find(std::string("\"") + mode + "\",true"), std::string::npos) << csv.out;
  }
  EXPECT_EQ(run_program(words + "--precision bf16").out.find("emulated"), std::string::npos);
}

TEST(Infer, writes_all_logits_in_the_order_of_the_images) {
  const Folder folder;
  const Outcome outcome = run_program(kMicro + "--input synthetic:11 --batch 4 --top 1 " +
                                      "--format json --output " + folder.path("logits"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto file = SafetensorsFile::open(folder.path("logits"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->header().tensors.size(), 1U);
  EXPECT_EQ(file->header().metadata.at("precision"), "fp32");
  const Tensor logits = *file->read(*file->find("logits"));
  ASSERT_EQ(logits.type(), (TensorType{DType::f32, Shape{11, 10}}));
  const auto told = json::parse(outcome.out);
  ASSERT_EQ(told["images"].size(), 11U);
  for (std::size_t image = 0; image < 11; ++image) {
    const auto row = logits.as<float>().subspan(image * 10, 10);
    const auto best = std::max_element(row.begin(), row.end());
    EXPECT_EQ(told["images"][image]["top"][0]["class"], best - row.begin());
    EXPECT_EQ(told["images"][image]["top"][0]["logit"].get<double>(), *best);
  }
}

TEST(Infer, of_one_logit_tells_its_probability_and_no_more_classes_than_there_are) {
  const Outcome outcome = run_program(
      "infer --model vit_micro_patch4_16 --classes 1 --pool mean --input synthetic:1 "
      "--format json");
  const auto top = json::parse(outcome.out)["images"][0]["top"];
  ASSERT_EQ(top.size(), 1U);
  const double logit = top[0]["logit"];
  EXPECT_NEAR(top[0]["probability"].get<double>(), 1 / (1 + std::exp(-logit)), 1e-12);
}

TEST(Infer, ends_with_4_where_a_logit_is_not_finite) {
  const Folder folder;
  write_weights(folder.path("w"), 65504.0F / 8);  // class 9 is beyond f16
  const std::string words = kMicro + "--input synthetic:2 --weights " + folder.path("w") + " ";
  const Outcome dead = run_program(words + "--precision fp16 --format json");
  EXPECT_EQ(dead.status, 4);
  EXPECT_NE(dead.err.find("1 numbers are too large for fp16, the first in head.bias"),
            std::string::npos)
      << dead.err;
  EXPECT_NE(dead.err.find("dead: 2 of 2 images"), std::string::npos) << dead.err;
  const auto told = json::parse(dead.out);
  EXPECT_EQ(told["numerical_state"], "dead");
  EXPECT_TRUE(told["images"][0]["top"].is_null()) << "unknown, not a class";
  EXPECT_EQ(run_program(words).status, 0) << "fp32 holds it";
  const Outcome csv = run_program(words + "--precision fp16 --format csv");
  EXPECT_NE(csv.out.find("\n0,,,,,dead,"), std::string::npos) << csv.out;
}

/// One line, exit status 2, and what it must say.
void expect_refused(const std::string& words, const std::string& says) {
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.status, 2) << words << outcome.err;
  EXPECT_EQ(outcome.out, "") << words;
  EXPECT_NE(outcome.err.find(says), std::string::npos) << words << ": " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Infer, refuses_weights_of_another_model_in_one_line) {
  const Folder folder;
  write_weights(folder.path("w"));
  const std::string end = " --input synthetic:1 --weights " + folder.path("w");
  expect_refused("infer --model vit_micro_patch4_16" + end,
                 "its head has 10 classes: --classes 10");
  expect_refused("infer --model vit_micro_patch4_32 --classes 10" + end,
                 "pos_embed 1x17x32, needs 1x65x32");
  expect_refused(kMicro + "--pool mean" + end, "--pool token");
  write_weights(folder.path("w"), 1, "norm.bias");
  expect_refused(kMicro + end, "1 missing (norm.bias)");
}

TEST(Infer, refuses_images_that_it_cannot_read_in_one_line) {
  const Folder folder;
  const std::string words = kMicro + "--input " + folder.path("i");
  Tensor images = filled(Shape{3, 3, 16, 16}, 0);
  images.as<float>()[2 * 768] = NAN;
  write(folder.path("i"), "anything", images);
  expect_refused(words, "image 2 holds nan in channel 0, row 0, column 0");
  write(folder.path("i"), "images", filled(Shape{3, 3, 8, 8}, 0));
  expect_refused(words, "images: f32 3x3x8x8; vit_micro_patch4_16 needs f32 Nx3x16x16");
  write(folder.path("i"), "images", Tensor(TensorType{DType::u8, Shape{3, 3, 16, 16}}));
  expect_refused(words, "images: u8 3x3x16x16; needed f32");
  const Tensor one = filled(Shape{1}, 0);
  const NamedTensor two[] = {{"a", one.view()}, {"b", one.view()}};
  ASSERT_TRUE(write_safetensors(folder.path("i"), two));
  expect_refused(words, "2 tensors, and none is called images");
}

// A picture and its pixels as a tensor, normalised by hand, are the same to the model.
TEST(Infer, sees_a_picture_as_the_tensor_of_its_pixels) {
  const Folder folder;
  const Image image = drawn_image(16, 16);
  folder.write("one.png", png_of(image));
  folder.write("two.jpg", "no picture");
  Tensor tensor(TensorType{DType::f32, Shape{1, 3, 16, 16}});
  for (std::size_t at = 0; at < 16 * 16; ++at) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      tensor.as<float>()[channel * 256 + at] =
          (static_cast<float>(image.pixels[at * 3 + channel]) / 255.0F - 0.5F) / 0.5F;
    }
  }
  write(folder.path("images.st"), "images", tensor);
  const std::string words = kMicro + "--format json ";
  const Outcome pictures = run_program(words + folder.path("one.png") + " " + folder.path(""));
  ASSERT_EQ(pictures.status, 0) << pictures.err;
  EXPECT_NE(pictures.err.find("1 of 3 pictures could not be read"), std::string::npos)
      << pictures.err;
  const json seen = json::parse(pictures.out);
  ASSERT_EQ(seen["images"].size(), 2U) << "named, and found in the folder";
  EXPECT_EQ(seen["images"][0]["image"], folder.path("one.png"));
  EXPECT_EQ(seen["bad"].size(), 1U);
  const json wanted =
      json::parse(run_program(words + "--input " + folder.path("images.st")).out);
  EXPECT_EQ(seen["images"][0]["top"], wanted["images"][0]["top"]);
  EXPECT_EQ(seen["images"][1]["top"], wanted["images"][0]["top"]);
}

TEST(Infer, tells_how_many_pictures_were_turned) {
  const Folder folder;
  const std::string jpeg = jpeg_of(drawn_image(20, 10));
  folder.write("one.jpg", with_segment(jpeg, exif_segment(6)));
  folder.write("two.jpg", with_segment(jpeg, exif_segment(3)));
  folder.write("upright.jpg", jpeg);
  const Outcome turned = run_program(kMicro + folder.path(""));
  EXPECT_EQ(turned.status, 0) << turned.err;
  EXPECT_NE(
      turned.err.find("halfwatt: 2 pictures were turned as their EXIF orientation says\n"),
      std::string::npos)
      << turned.err;
  EXPECT_EQ(run_program(kMicro + folder.path("upright.jpg")).err.find("turned"),
            std::string::npos);
}

TEST(Infer, refuses_paths_that_lead_to_no_picture_in_one_line) {
  const Folder folder;
  EXPECT_NE(run_program(kMicro + folder.path("none.jpg")).err.find("not there"),
            std::string::npos);
  EXPECT_NE(run_program(kMicro + folder.path("")).err.find("no picture in it"),
            std::string::npos);
  folder.write("bad.png", "x");
  const Outcome bad = run_program(kMicro + folder.path("bad.png"));
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("none of 1 pictures could be read"), std::string::npos) << bad.err;
  const Outcome both = run_program(kMicro + folder.path("bad.png") + " --input synthetic:1");
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("and not both"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace halfwatt

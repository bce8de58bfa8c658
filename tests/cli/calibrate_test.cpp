// `halfwatt calibrate`, and `halfwatt infer --scales` with what it wrote.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli/program.h"
#include "engine/formats/safetensors.h"
#include "engine/models/vit.h"
#include "support/pictures.h"

namespace halfwatt {
namespace {

using nlohmann::json;

const std::string kModel = " --model vit_micro_patch4_16 --classes 10 ";

/// Weights drawn from `seed`, small as a training begins.
void write_weights(const std::string& path, std::uint64_t seed, float first = 1) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.classes = 10;
  Rng rng(seed);
  const auto parameters = vit_parameters(config);
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const StateSpec& spec : parameters) {
    tensors.emplace_back(TensorType{DType::f32, spec.type.shape});
    for (float& value : tensors.back().as<float>()) {
      value = static_cast<float>(rng.normal()) * 0.05F;
    }
    if (spec.name == "blocks.0.attn.qkv.weight") {
      tensors.back().as<float>()[0] = first;
    }
    named.push_back({spec.name, tensors.back().view()});
  }
  ASSERT_TRUE(write_safetensors(path, named));
}

class Calibrate : public testing::Test {
 protected:
  Calibrate() { write_weights(weights_, 1); }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome calibrate(const std::string& more) const {
    return run_program("calibrate" + kModel + "--weights " + weights_ + " --out " + scales_ +
                       " " + more);
  }
  /// Words of an inference that its scales are for.
  std::string infer() const {
    return "infer" + kModel + "--input synthetic:3 --precision fp8 --weights " + weights_ +
           " --scales " + scales_;
  }
  void expect_refused(const std::string& words, const std::string& says) const {
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.status, 2) << words << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << words << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  Folder folder_;
  std::string weights_ = folder_.path("w.safetensors");
  std::string scales_ = folder_.path("scales.json");
};

TEST_F(Calibrate, writes_what_it_saw_and_of_what) {
  const Outcome outcome = calibrate("--input synthetic:20");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find(
                "scales.json: scales of 16 operands of vit_micro_patch4_16, from 20 images"),
            std::string::npos)
      << outcome.out;
  const auto told = json::parse(read_file(scales_));
  EXPECT_EQ(told["schema"], "halfwatt.scales/1");
  EXPECT_EQ(told["model"], "vit_micro_patch4_16");
  EXPECT_EQ(told["weights"]["file"], "w.safetensors");
  EXPECT_EQ(told["weights"]["sha256"].get<std::string>().size(), 64U);
  EXPECT_EQ(told["images"], 20);
  EXPECT_EQ(told["format"], "e4m3");
  EXPECT_EQ(told["date"].get<std::string>().size(), 10U);
  EXPECT_EQ(told["layers"].size(), 8U);
  const auto& weight = told["layers"]["blocks.0.attn.qkv"]["weight"];
  EXPECT_EQ(weight["amax"], 1.0) << "of the weights themselves";
  EXPECT_EQ(weight["scale"], 448.0);
}

TEST_F(Calibrate, writes_the_same_again_and_looks_at_no_more_than_it_is_told) {
  ASSERT_EQ(calibrate("--input synthetic:20 --batch 4 --batches 2").status, 0);
  auto one = json::parse(read_file(scales_));
  EXPECT_EQ(one["images"], 8);
  ASSERT_EQ(calibrate("--input synthetic:20 --batch 4 --batches 2").status, 0);
  auto other = json::parse(read_file(scales_));
  one.erase("date");
  other.erase("date");
  EXPECT_EQ(one, other);
}

TEST_F(Calibrate, takes_its_pictures_evenly_out_of_all) {
  folder_.write("a1.png", png_of(drawn_image(16, 16)));
  folder_.write("a2.jpg", "no picture");
  folder_.write("b1.png", png_of(drawn_image(20, 16)));
  folder_.write("b2.jpg", "no picture");
  const Outcome halved = calibrate("--batch 1 --batches 2 " + path(""));
  EXPECT_EQ(halved.status, 0) << halved.err;
  EXPECT_EQ(halved.err, "") << "those that are no pictures are not looked at";
  EXPECT_EQ(json::parse(read_file(scales_))["images"], 2);
  const Outcome whole = calibrate(path(""));
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(whole.err.find("2 of 4 pictures could not be read"), std::string::npos)
      << whole.err;
}

TEST_F(Calibrate, is_what_an_inference_in_fp8_then_computes_with) {
  ASSERT_EQ(calibrate("--input synthetic:20").status, 0);
  const Outcome fixed = run_program(infer() + " --format json");
  ASSERT_EQ(fixed.status, 0) << fixed.err;
  const auto told = json::parse(fixed.out);
  EXPECT_EQ(told["scales"], scales_);
  EXPECT_EQ(told["numerical_state"], "live");
  const Outcome table = run_program(infer());
  EXPECT_NE(table.out.find("vit_micro_patch4_16 in fp8 with fixed scales"), std::string::npos)
      << table.out;
  const Outcome current =
      run_program("infer" + kModel + "--input synthetic:3 --precision fp8 --weights " +
                  weights_ + " --format json");
  EXPECT_TRUE(json::parse(current.out)["scales"].is_null());
  // The file's numbers are computed with, not those of the images.
  std::string text = read_file(scales_);
  const std::size_t where = text.find("\"scale\": ");
  folder_.write("scales.json", text.replace(where, 9, "\"scale\": 1e-6, \"was\": "));
  const auto coarse = json::parse(run_program(infer() + " --format json").out);
  EXPECT_NE(coarse["images"], told["images"]);
}

TEST_F(Calibrate, is_refused_where_it_is_of_something_else) {
  ASSERT_EQ(calibrate("--input synthetic:4").status, 0);
  const std::string words = infer();
  const auto with = [&](const std::string& from, const std::string& to) {
    return std::string(words).replace(words.find(from), from.size(), to);
  };
  expect_refused(with("--precision fp8", "--precision bf16"),
                 "they are for --precision fp8, found bf16");
  expect_refused(with("--precision fp8", "--precision fp8-delayed"),
                 "they are for --precision fp8, found fp8-delayed");
  expect_refused(with("patch4_16", "patch2_16"),
                 "scales of the model \"vit_micro_patch4_16\", needed those of "
                 "vit_micro_patch2_16");
  expect_refused(with("--weights " + weights_, ""), "needed --weights");
  const std::string right = read_file(scales_);
  const auto changed = [&](const std::string& from, const std::string& to) {
    folder_.write("scales.json", std::string(right).replace(right.find(from), from.size(), to));
  };
  changed("\"blocks.1.mlp.fc1\"", "\"blocks.7.mlp.fc1\"");
  expect_refused(words, "no scale of blocks.1.mlp.fc1.input and 1 more operands");
  changed("\"amax\": ", "\"amax\": \"nan\", \"was\": ");
  expect_refused(words, "is \"nan\", needed a finite number of 0 or more");
  folder_.write("scales.json", "{}");
  expect_refused(words, "no scales; needed JSON of the schema halfwatt.scales/1");
  folder_.write("scales.json", right);
  write_weights(weights_, 2);
  expect_refused(words, "scales of other weights: of \"w.safetensors\"");
}

TEST_F(Calibrate, says_what_it_needs_in_one_line) {
  expect_refused("calibrate" + kModel + "--out " + scales_ + " --input synthetic:1",
                 "calibrate: --weights FILE is missing");
  expect_refused("calibrate" + kModel + "--weights " + weights_ + " --input synthetic:1",
                 "calibrate: --out FILE is missing");
  expect_refused("calibrate" + kModel + "--weights " + weights_ + " --out " + scales_,
                 "calibrate: no pictures; needed PATH..., or --input");
  expect_refused("calibrate" + kModel + "--weights " + weights_ + " --out " + scales_ +
                     " --input synthetic:1 --batches 0",
                 "--batches");
}

TEST_F(Calibrate, of_a_dead_run_writes_nothing) {
  write_weights(weights_, 1, std::numeric_limits<float>::infinity());
  const Outcome outcome = calibrate("--input synthetic:4");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("dead: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("no scales are written"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_file(scales_), "");
}

}  // namespace
}  // namespace halfwatt

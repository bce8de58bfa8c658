// `halfwatt convert` on small files made here.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "engine/formats/safetensors.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

struct Weights {
  explicit Weights(float largest) {
    const std::vector<float> values = {1, -2.5F, 1e-9F, largest};
    const std::vector<std::int64_t> ids = {7};
    const Tensor head = Tensor::of<float>(DType::f32, Shape{2, 2}, values);
    const Tensor norm = Tensor::of<float>(DType::f32, Shape{4}, values);
    const Tensor places = Tensor::of<std::int64_t>(DType::i64, Shape{1}, ids);
    const std::vector<NamedTensor> all = {{"head.weight", head.view()},
                                          {"blocks.0.norm1.weight", norm.view()},
                                          {"ids", places.view()}};
    EXPECT_TRUE(write_safetensors(path, all, {{"format", "pt"}}));
  }
  Folder folder;
  std::string path = folder.path("from.safetensors");
  std::string to = folder.path("to.safetensors");
};

TEST(Convert, writes_half_the_bytes_and_tells_what_was_lost) {
  const Weights weights(3);
  const Outcome outcome =
      run_program("convert --format json " + weights.path + " " + weights.to);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "halfwatt.convert/1");
  EXPECT_EQ(json["total"]["elements"], 8);
  EXPECT_EQ(json["total"]["underflowed"], 2);
  EXPECT_EQ(json["total"]["overflowed"], 0);
  const auto file = SafetensorsFile::open(weights.to);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->find("head.weight")->type, (TensorType{DType::f16, Shape{2, 2}}));
  EXPECT_EQ(file->find("ids")->type.dtype, DType::i64) << "integers stay";
  EXPECT_EQ(file->header().metadata.at("format"), "pt");
}

TEST(Convert, takes_the_weights_that_were_evaluated_out_of_a_checkpoint) {
  const Folder folder;
  const std::vector<float> weight = {1, 2};
  const std::vector<float> average = {3, 4};
  const Tensor one = Tensor::of<float>(DType::f32, Shape{2}, weight);
  const Tensor other = Tensor::of<float>(DType::f32, Shape{2}, average);
  const std::vector<NamedTensor> all = {{"norm.weight", one.view()},
                                        {"norm.weight.ema", other.view()},
                                        {"norm.weight.exp_avg", one.view()},
                                        {"scaler.scale", one.view()}};
  ASSERT_TRUE(write_safetensors(folder.path("from"), all,
                                {{"halfwatt.checkpoint", "{}"}, {"classes", "[\"a\"]"}}));
  const Outcome outcome =
      run_program("convert --dtype f32 " + folder.path("from") + " " + folder.path("to"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto file = SafetensorsFile::open(folder.path("to"));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->header().tensors.size(), 1U);
  EXPECT_EQ(file->header().tensors[0].name, "norm.weight");
  EXPECT_EQ(file->read(file->header().tensors[0])->as<float>()[1], 4);
  EXPECT_EQ(file->header().metadata,
            (std::map<std::string, std::string>{{"classes", "[\"a\"]"}}));
}

TEST(Convert, keeps_tensors_that_it_is_told_to_keep) {
  const Weights weights(3);
  const Outcome outcome =
      run_program("convert --dtype bf16 --keep '*norm*' " + weights.path + " " + weights.to);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1 of 3 tensors converted to bf16"), std::string::npos)
      << outcome.out;
  const auto file = SafetensorsFile::open(weights.to);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->find("head.weight")->type.dtype, DType::bf16);
  EXPECT_EQ(file->find("blocks.0.norm1.weight")->type.dtype, DType::f32);
}

TEST(Convert, writes_nothing_that_would_be_infinite_unless_it_may_saturate) {
  const Weights weights(1e6F);
  const Outcome refused = run_program("convert " + weights.path + " " + weights.to);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("too large for f16 (up to 1e+06, it ends at 6.55e+04)"),
            std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(weights.to));
  const Outcome saturated =
      run_program("convert --saturate " + weights.path + " " + weights.to);
  EXPECT_EQ(saturated.status, 0) << saturated.err;
  EXPECT_NE(saturated.out.find("2 were too large"), std::string::npos) << saturated.out;
}

TEST(Convert, refuses_what_it_does_not_know_in_one_line) {
  const Weights weights(3);
  const std::string files = weights.path + " " + weights.to;
  EXPECT_NE(run_program("convert --dtype i8 " + files).err.find("needed f16, bf16 or f32"),
            std::string::npos);
  EXPECT_NE(run_program("convert --keep nothing " + files).err.find("no tensor of"),
            std::string::npos);
  EXPECT_NE(run_program("convert " + weights.path).err.find("needed FROM and TO"),
            std::string::npos);
  const Outcome same = run_program("convert /nowhere.safetensors " + weights.to);
  EXPECT_EQ(same.status, 2);
  EXPECT_EQ(std::count(same.err.begin(), same.err.end(), '\n'), 1) << same.err;
}

}  // namespace
}  // namespace halfwatt

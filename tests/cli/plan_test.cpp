// `halfwatt plan` as a person or a script meets it.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

const std::string kStudy = "plan --model vit_base_patch16_224 --classes 1 ";
const std::string kMicro = "plan --model vit_micro_patch4_16 ";

Json planned(const std::string& words) {
  const Outcome outcome = run_program(words + " --format json");
  EXPECT_EQ(outcome.status, 0) << words << ": " << outcome.err;
  return Json::parse(outcome.out, nullptr, false);
}

TEST(PlanCommand, says_what_a_training_step_of_the_study_is) {
  const std::string words =
      kStudy + "--mode train --batch 160 --precision amp-bf16 --target h200";
  const Outcome text = run_program(words);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("16.94 TFLOP"), std::string::npos) << text.out;
  const Json json = planned(words);
  EXPECT_NEAR(json["flops_per_step"].get<double>(), 16.94e12, 5e9);
  EXPECT_GT(json["bytes_moved"], 0);
  EXPECT_GT(json["peak_bytes"], 0);
  EXPECT_GT(json["predicted_ms"], 0);
  EXPECT_EQ(json["layers"][2]["layer"], "blocks.0");
  EXPECT_EQ(json["unaligned_products"].size(), 3U);
}

TEST(PlanCommand, finds_the_largest_batch_that_fits) {
  const std::string words = kStudy +
                            "--precision amp-fp16 --target rtx3090 --memory 10GiB --batch auto "
                            "--effective-batch 1024";
  const Json json = planned(words);
  const std::int64_t batch = json["batch"];
  EXPECT_EQ(batch * json["accumulation"].get<std::int64_t>(), 1024);
  EXPECT_EQ(json["recompute"], "none");
  EXPECT_LE(json["peak_bytes"], 10737418240.0);
  const Outcome more = run_program(kStudy +
                                   "--precision amp-fp16 --target rtx3090 --memory 10GiB "
                                   "--effective-batch 1024 --batch " +
                                   std::to_string(2 * batch));
  EXPECT_EQ(more.status, 2);
  EXPECT_NE(more.err.find("--batch " + std::to_string(batch) + " --effective-batch 1024 would"),
            std::string::npos)
      << more.err;
}

TEST(PlanCommand, says_not_to_split_where_that_loses) {
  const std::string words =
      kStudy + "--batch 16 --precision amp-fp16 --place fp32=t4:0,16bit=t4:1";
  const Outcome text = run_program(words);
  EXPECT_NE(text.out.find("Do not split"), std::string::npos) << text.out << text.err;
  const Json json = planned(words);
  EXPECT_EQ(json["split"], false);
  EXPECT_GT(json["bytes_between_devices"], 0);
  EXPECT_GT(json["predicted_ms"], json["alone"]["predicted_ms"]);
  EXPECT_EQ(json["devices"].size(), 2U);
}

TEST(PlanCommand, says_to_split_on_devices_that_are_made_for_it) {
  const Folder folder;
  const auto device = [&](const std::string& name, double fp32, double bf16) {
    return folder.write(name + ".json",
                        Json{{"name", name},
                             {"memory_bytes", 1e11},
                             {"bytes_per_second", 4e12},
                             {"link_bytes_per_second", 2e12},
                             {"link_latency_s", 1e-6},
                             {"flops_per_second", {{"fp32", fp32}, {"bf16", bf16}}}}
                            .dump());
  };
  const std::string targets = device("D1", 1e14, 1e13) + "," + device("D2", 1e13, 1e14);
  const Json json =
      planned(kStudy + "--batch 64 --precision amp-bf16 --override 'blocks.[0-5].*=fp32' " +
              "--place fp32=D1,16bit=D2 --target " + targets);
  EXPECT_EQ(json["split"], true) << json["predicted_ms"] << json["alone"];
}

TEST(PlanCommand, prints_the_graph_after_a_pass_and_skips_one) {
  const Outcome graph = run_program(kMicro + "--print-after precision --precision amp-fp16");
  EXPECT_EQ(graph.status, 0) << graph.err;
  EXPECT_NE(graph.out.find("state blocks.0.attn.qkv.weight@f16 : copy"), std::string::npos);
  EXPECT_EQ(graph.out.find("backward:"), std::string::npos);
  const auto flops = [](const std::string& more) {
    return planned(kMicro + "--target t4 --recompute blocks " + more)["flops_per_step"]
        .get<double>();
  };
  EXPECT_LT(flops("--skip-pass recompute"), flops(""));
}

TEST(PlanCommand, plans_every_mode_that_its_help_lists) {
  const std::string help = run_program("plan --help").out;
  for (const char* mode : {"fp32", "tf32", "amp-fp16", "amp-bf16", "fp16", "bf16", "fp16-sr",
                           "bf16-sr", "fp8", "fp8-delayed", "O0", "O1", "O2", "O3", "fp64"}) {
    EXPECT_NE(help.find(mode), std::string::npos) << mode;
    EXPECT_EQ(planned(kMicro + "--precision " + mode)["precision"], mode);
  }
}

struct BadPlan {
  std::string words;
  std::string says;
};

TEST(PlanCommand, refuses_bad_input_in_one_clear_line) {
  const std::vector<BadPlan> all = {
      {"plan", "--model NAME is missing"},
      {"plan --model resnet50", "no model resnet50; there are"},
      {kMicro + "--mode fit", "--mode fit: needed train or infer"},
      {kMicro + "--batch 0", "--batch 0: needed a number from 1"},
      {kMicro + "--batch 2.5", "--batch 2.5: needed a whole number"},
      {kMicro + "--classes 0", "--classes 0"},
      {kMicro + "--precision half", "no precision half; there are fp32"},
      {kMicro + "--override 'heads.*=fp32'", "heads.*: no layer is called so"},
      {kMicro + "--override head", "needs PATTERN=PRECISION"},
      {kMicro + "--place 'block.*=cpu:0'", "no layer is called so"},
      {kMicro + "--place blocks", "needs WHAT=DEVICE"},
      {kMicro + "--target cpu --place 'blocks.*=t4'", "no device t4; there are cpu"},
      {kMicro + "--target h300", "no target h300; there are h200"},
      {kMicro + "--target t4,t4", "two devices t4; t4:0,t4:1"},
      {kMicro + "--precision bf16 --target t4", "it has no products of bf16"},
      {kMicro + "--precision fp8 --target a100", "it has no products of e4m3"},
      {kMicro + "--batch auto --memory 64MB --effective-batch 8 --mode infer",
       "--effective-batch: is for --mode train"},
      {kMicro + "--batch 3 --effective-batch 8", "needed a multiple of --batch 3"},
      {kMicro + "--batch auto --memory 1KiB", "with --recompute blocks either"},
      {kMicro + "--memory 3parsecs", "--memory 3parsecs: needed a size"},
      {kMicro + "--skip-pass fusion", "--skip-pass fusion: no such pass; there are precision"},
      {kMicro + "--print-after lower", "--print-after lower: no such pass"},
      {kMicro + "--format csv", "--format csv: needed text or json"},
      {kMicro + "--recompute all", "--recompute all: needed none or blocks"},
      {kMicro + "--optimizer lamb", "--optimizer lamb: needed adamw or sgd"},
      {kStudy + "--batch 512 --target t4 --precision amp-fp16",
       "--batch 128 --effective-batch 512 would"},
  };
  for (const BadPlan& bad : all) {
    const Outcome outcome = run_program(bad.words);
    EXPECT_EQ(outcome.status, 2) << bad.words;
    EXPECT_NE(outcome.err.find(bad.says), std::string::npos)
        << bad.words << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << bad.words;
  }
}

}  // namespace
}  // namespace halfwatt

// `halfwatt plan` for the machine it runs on, whose rates are measured.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

const std::string kMicro = " --model vit_micro_patch4_16 --classes 10 ";

Json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return Json::parse(outcome.out, nullptr, false);
}

TEST(ProcessorPlan, measures_the_rates_once_and_predicts_what_bench_does) {
  const Folder cache;
  const std::string plan = "plan" + kMicro + "--mode infer --precision amp-fp16 --batch 4 ";
  const Outcome first = run_program(plan + "--target cpu --format json", with_cache(cache));
  EXPECT_NE(first.err.find("measuring how fast"), std::string::npos) << first.err;
  const Json json = parsed(first);
  ASSERT_GT(json["predicted_ms"], 0);
  EXPECT_EQ(json["devices"][0]["rates"].get<std::string>().find("measured on "), 0U);
  EXPECT_GT(json["layers"][2]["busy_ms"], 0);

  const Outcome bench = run_program("bench" + kMicro +
                                        "--mode infer --precision amp-fp16 --batch 4 "
                                        "--seconds 0.2 --format json",
                                    with_cache(cache));
  EXPECT_EQ(bench.err.find("measuring how fast"), std::string::npos) << bench.err;
  const Json row = Json::parse(bench.out)["rows"][0];
  const double predicted = json["predicted_ms"].get<double>();
  EXPECT_NEAR(row["predicted_ms"].get<double>(), predicted, 1e-6 * predicted);
  EXPECT_EQ(row["plan_mib"].get<double>() * 1024 * 1024, json["peak_bytes"].get<double>());

  const Outcome text = run_program(plan, with_cache(cache));  // cpu is the target by itself
  EXPECT_EQ(text.err, "");
  EXPECT_NE(text.out.find("measured on "), std::string::npos) << text.out;
}

TEST(ProcessorPlan, fills_the_memory_of_this_machine) {
  const Json json =
      parsed(run_program("plan" + kMicro + "--batch auto --format json", with_shared_cache()));
  EXPECT_GT(json["batch"], 8);
  EXPECT_GT(json["devices"][0]["memory_bytes"], 0);
  EXPECT_LE(json["peak_bytes"], json["devices"][0]["memory_bytes"]);
}

TEST(ProcessorPlan, splits_this_machine_in_two) {
  const Json json = parsed(run_program(
      "plan" + kMicro + "--batch 8 --place 'blocks.0.*=cpu:1' --target cpu:0,cpu:1 " +
          "--format json",
      with_shared_cache()));
  EXPECT_GT(json["predicted_ms"], 0);
  EXPECT_GT(json["alone"]["predicted_ms"], 0);
  EXPECT_EQ(json["devices"][1]["name"], "cpu:1");
}

}  // namespace
}  // namespace halfwatt

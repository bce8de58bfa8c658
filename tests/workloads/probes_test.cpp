#include "workloads/probes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/ops/builder.h"
#include "engine/passes/pipeline.h"
#include "engine/train/trainer.h"
#include "workloads/probe_cache.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// A file that is gone with the test.
class CacheFile {
 public:
  CacheFile() : folder_(fs::temp_directory_path() / ("halfwatt-probes-" + unique())) {}
  ~CacheFile() { fs::remove_all(folder_); }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  fs::path path() const { return folder_ / "deep" / "probes.json"; }

 private:
  static std::string unique() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  fs::path folder_;
};

const OpRates kSome = {
    {"matmul f32>f32", {Seconds(1e-6), Seconds(0), Seconds(1e-11 / 3), Seconds(1e-12)}},
    {"matmul f16>f32", {Seconds(2e-6), Seconds(0), Seconds(1e-11), Seconds(0)}},
    {"matmul f16>f16", {Seconds(4e-6), Seconds(0), Seconds(2e-11), Seconds(0)}},
    {"add f32>f32", {Seconds(2e-6), Seconds(1e-9), Seconds(0), Seconds(5e-11)}},
    {"gelu f32>f32", {Seconds(3e-6), Seconds(0), Seconds(0), Seconds(1e-9)}}};

TEST(FittedRate, finds_the_parts_of_exact_times) {
  std::vector<TimedNode> nodes;
  for (const NodeWork work : {NodeWork{1e3, 1e2, 10},
                              {1e6, 1e3, 50},
                              {1e6, 1e6, 1e4},
                              {1e9, 1e5, 1e3},
                              {1e9, 1e7, 1e3}}) {
    nodes.push_back({work, 5e-6 + 3e-8 * work.rows + work.flops / 2e10 + work.bytes / 4e9});
  }
  const OpRate rate = fitted_rate(nodes);
  EXPECT_NEAR(rate.launch.value(), 5e-6, 1e-10);
  EXPECT_NEAR(rate.of_row.value(), 3e-8, 1e-12);
  EXPECT_NEAR(rate.of_flop.value(), 5e-11, 1e-15);
  EXPECT_NEAR(rate.of_byte.value(), 2.5e-10, 1e-14);
}

TEST(FittedRate, has_no_negative_part_whatever_the_times_are) {
  const std::vector<std::vector<TimedNode>> odd = {
      {{{0, 1e6, 9}, 1e-3}},                       // one size alone
      {{{0, 1e6, 9}, 1e-3}, {{0, 1e6, 9}, 2e-3}},  // the same size twice
      {{{1e3, 1, 1}, 1e-3}, {{1e6, 9, 9}, 1e-4}},  // less work takes longer
      {{{0, 1e3, 1}, 1e-6}, {{0, 2e3, 1}, 1e-5}, {{0, 3e3, 1}, 1e-4}},  // out of proportion
      {{{0, 0, 1}, 1e-6}, {{0, 0, 1}, 2e-6}},                           // nothing is done
  };
  for (const auto& nodes : odd) {
    const OpRate rate = fitted_rate(nodes);
    EXPECT_GE(rate.launch, Seconds(0));
    EXPECT_GE(rate.of_row, Seconds(0));
    EXPECT_GE(rate.of_flop, Seconds(0));
    EXPECT_GE(rate.of_byte, Seconds(0));
    double sum = 0;
    double predicted = 0;
    for (const TimedNode& node : nodes) {
      sum += node.seconds;
      predicted += rate.time(node.work).value();
    }
    EXPECT_LT(predicted, 2.5 * sum);
    EXPECT_GT(predicted, 0);
  }
}

TEST(OpRates, fill_what_a_target_says_of_a_device) {
  const auto backend = *open_cpu();
  const Target target = with_rates(backend->target(), kSome);
  EXPECT_DOUBLE_EQ(target.flops.at(DType::f32), 3e11);
  EXPECT_DOUBLE_EQ(target.flops.at(DType::f16), 1e11) << "the fastest";
  EXPECT_EQ(target.flops.count(DType::bf16), 0U) << "nobody measured it";
  EXPECT_DOUBLE_EQ(target.bytes_per_second, 2e10);
  EXPECT_EQ(target.launch, Seconds(2e-6));
}

std::vector<Plan> plans_of(const Precision& precision, const Target& target) {
  TrainRecipe recipe;
  recipe.model = *vit_named("vit_tiny_patch16_224");
  recipe.precision = precision;
  recipe.batch = 1;
  std::vector<Plan> plans = *training_plans(recipe, target);
  Compilation asked;
  asked.precision = precision;
  asked.targets = {target};
  plans[1] =
      *lower(compile(vit(recipe.model, 1, ModelMode::infer), asked)->graph, {&target, 1});
  return plans;
}

TEST(Probe, times_every_kind_of_step_of_a_training_and_an_inference) {
  const auto backend = *open_cpu();
  for (const char* mode : {"fp32", "amp-fp16"}) {
    const Precision precision = *precision_named(mode);
    const auto rates = probe(*backend, precision);
    ASSERT_TRUE(rates) << rates.error().message;
    for (const Plan& plan : plans_of(precision, backend->target())) {
      for (const Step& step : plan.devices[0].steps) {
        const std::string name = rate_name(plan.graph, step.node);
        EXPECT_EQ(rates->count(name), 1U) << mode << ": " << name;
      }
    }
  }
}

TEST(RateName, tells_conversions_apart) {
  Graph graph;
  Builder build(graph);
  const Value wide = build.input("x", {DType::f32, Shape{4, 4}});
  const auto name_of_cast = [&](DType to) {
    return rate_name(graph, build.cast(wide, to).node);
  };
  EXPECT_EQ(name_of_cast(DType::bf16), "cast f32>bf16");
  EXPECT_EQ(name_of_cast(DType::f16), "cast f32>f16");
}

TEST(ProbeCache, keeps_rates_for_the_next_run_to_the_bit) {
  const CacheFile file;
  ProbeCache("this", file.path()).put("fp32", kSome);
  ProbeCache("this", file.path()).put("bf16", {});
  EXPECT_EQ(ProbeCache("this", file.path()).find("fp32"), kSome);
  EXPECT_EQ(ProbeCache("this", file.path()).find("tf32"), std::nullopt);
  EXPECT_EQ(ProbeCache("that", file.path()).find("fp32"), std::nullopt);
}

TEST(ProbeCache, keeps_what_another_process_measured_meanwhile) {
  const CacheFile file;
  ProbeCache one("this", file.path());
  ProbeCache("this", file.path()).put("bf16", kSome);
  one.put("fp32", kSome);
  EXPECT_EQ(ProbeCache("this", file.path()).find("bf16"), kSome);
  EXPECT_EQ(ProbeCache("this", file.path()).find("fp32"), kSome);
}

TEST(ProbeCache, takes_a_file_that_is_none_as_no_file) {
  const CacheFile file;
  fs::create_directories(file.path().parent_path());
  for (const char* text :
       {"", "{", "[]", "{\"schema\":1}",
        R"({"schema":"halfwatt.probes/2","machine":"this","rates":[1]})",
        R"({"schema":"halfwatt.probes/2","machine":"this","rates":{"fp32":{"add f32":7}}})",
        R"({"schema":"halfwatt.probes/2","machine":"this","rates":{"fp32":)"
        R"({"add f32":{"launch_s":0,"row_s":-1,"flop_s":0,"byte_s":0}}}})"}) {
    std::ofstream(file.path()) << text;
    ProbeCache cache("this", file.path());
    EXPECT_EQ(cache.find("fp32"), std::nullopt) << text;
    cache.put("fp32", kSome);
    EXPECT_EQ(ProbeCache("this", file.path()).find("fp32"), kSome);
  }
}

TEST(ProbeCache, works_where_nothing_can_be_written) {
  for (const auto& path :
       {std::optional<fs::path>("/proc/nothing/probes.json"), std::optional<fs::path>()}) {
    ProbeCache cache("this", path);
    cache.put("fp32", kSome);
    EXPECT_EQ(cache.find("fp32"), kSome);
  }
}

}  // namespace
}  // namespace halfwatt

// The recorded sets in data/, read from the repository's root.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tune/csv_bytes.h"
#include "tune/embedded.h"
#include "tune/import_claims.h"
#include "tune/import_csv.h"

namespace halfwatt {
namespace {

Imported data(const std::string& name, const ImportOptions& options = {}) {
  auto file = import_csv(std::filesystem::path("data/" + name + ".csv"), options);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  EXPECT_FALSE(file->source.empty());
  EXPECT_FALSE(file->terms.empty());
  return *std::move(file);
}

const Series& series(const Imported& file, std::string_view name) {
  static const Series none;
  const auto found = std::ranges::find_if(
      file.series, [name](const Series& each) { return text(each.labels) == name; });
  if (found == file.series.end()) {
    ADD_FAILURE() << "no series " << name;
    return none;
  }
  return *found;
}

/// The figures at `knob`, the first of several.
Measurement at(const Series& series, double knob) {
  for (const Measurement& measurement : series.measurements) {
    if (measurement.setting.number(series.knob.name) == knob) {
      return measurement;
    }
  }
  ADD_FAILURE() << "nothing at " << knob;
  return {};
}

TEST(ImportData, reads_the_study_as_ten_series_of_34_limits) {
  const auto file = data("rtx3090_vit_b16");
  ASSERT_EQ(file.series.size(), 10U);
  EXPECT_TRUE(file.remarks.empty());
  for (const Series& each : file.series) {
    ASSERT_EQ(each.measurements.size(), 34U);
    EXPECT_EQ(each.device, "NVIDIA GeForce RTX 3090");
    EXPECT_EQ(each.limits, (LimitRange{Watts(150), Watts(480), Watts(390)}));
    EXPECT_EQ(each.measurements.front().setting.number("power_limit"), 150);
    EXPECT_EQ(each.measurements.back().setting.number("power_limit"), 480);
    EXPECT_EQ(each.measurements.back().work.unit, "image");
  }
  const Series& fp32 = file.series[0];
  EXPECT_EQ(text(fp32.labels), "vit_base_patch16_224 train fp32 160");
  EXPECT_EQ(at(fp32, 480).work.step_time, Seconds(0.986447021484375));
  EXPECT_NEAR(at(fp32, 480).work.items_per_second(), 162.2, 0.05);
  EXPECT_NEAR(at(file.series[9], 480).work.items_per_second(), 2492.1, 0.05);
}

TEST(ImportData, marks_the_studys_half_precision_training_as_dead_and_nothing_else) {
  const auto file = data("rtx3090_vit_b16");
  for (const Series& each : file.series) {
    const bool dead = text(each.labels) == "vit_base_patch16_224 train fp16_half 160";
    EXPECT_EQ(each.remark.empty(), !dead);
    for (const Measurement& measurement : each.measurements) {
      EXPECT_EQ(measurement.numerical_state,
                dead ? NumericalState::dead : NumericalState::unknown);
    }
  }
}

TEST(ImportData, reads_the_zeus_traces_as_218_configurations) {
  const auto file = data("zeus_nsdi23_power_trace");
  ASSERT_EQ(file.series.size(), 218U);
  EXPECT_TRUE(file.remarks.empty());
  std::size_t rows = 0;
  std::size_t six_or_more = 0;
  for (const Series& each : file.series) {
    rows += each.measurements.size();
    six_or_more += each.measurements.size() >= 6 ? 1 : 0;
    EXPECT_EQ(each.measurements[0].work.unit, "epoch");
    EXPECT_EQ(each.measurements[0].work.items_per_step, 1);
    EXPECT_EQ(each.measurements[0].energy.method, EnergyMethod::average_power);
  }
  EXPECT_EQ(rows, 1609U);
  EXPECT_EQ(six_or_more, 211U);
  const Series& first = series(file, "NVIDIA A40 cifar100 shufflenetv2 1024 adadelta");
  EXPECT_EQ(first.device, "NVIDIA A40");
  EXPECT_EQ(at(first, 125).work.step_time, Seconds(16.85));
  EXPECT_EQ(at(first, 125).energy.value, Joules(2004.93));
}

TEST(ImportData, reads_the_zeus_profiles_with_counter_energy) {
  const auto file = data("zeus_jit_profiles");
  ASSERT_EQ(file.series.size(), 12U);
  const Series& four = series(file, "NVIDIA A40 resnet18 4");
  ASSERT_EQ(four.measurements.size(), 9U);
  EXPECT_EQ(at(four, 300).work.step_time, Seconds(33.2775));
  EXPECT_EQ(at(four, 300).work.unit, "window");
  EXPECT_EQ(at(four, 300).energy.value, Joules(16520.021));
  EXPECT_EQ(at(four, 300).energy.method, EnergyMethod::counter);
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_NE(file.remarks[0].find("energy_max_over_min_gpu"), std::string::npos);
}

TEST(ImportData, reads_the_llm_caps_with_measured_draw) {
  const auto file = data("club3090_llm_power_caps");
  ASSERT_EQ(file.series.size(), 8U);
  EXPECT_TRUE(file.remarks.empty());
  const Series& decode = series(file, "RTX 3090 Qwen3.6-27B Q3_K_XL llama.cpp decode-single 1");
  ASSERT_EQ(decode.measurements.size(), 21U);
  const Measurement at_290 = at(decode, 290);
  EXPECT_EQ(at_290.work.unit, "token");
  EXPECT_NEAR(at_290.work.items_per_second(), 32.26, 1e-9);
  EXPECT_NEAR(at_290.joules_per_item()->value(), 289.55 / 32.26, 1e-9);
  EXPECT_EQ(at_290.conditions.sm_clock, Megahertz(1380));
  const Series& concurrent =
      series(file, "RTX 4090 Qwen3.6-27B Q3_K_XL llama.cpp decode-concurrent 4");
  EXPECT_EQ(concurrent.measurements.size(), 38U);
  EXPECT_FALSE(concurrent.measurements[0].conditions.sm_clock);
}

TEST(ImportData, reads_the_clock_locks_when_told_which_rate) {
  const auto refused =
      import_csv(std::filesystem::path("data/club3090_rtx5090_clock_lock.csv"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "data/club3090_rtx5090_clock_lock.csv:1: columns tokens_per_s_narrative and "
            "tokens_per_s_code both tell the speed; choose one: --y tokens_per_s_narrative");
  const auto file = data("club3090_rtx5090_clock_lock", {.y = "tokens_per_s_code"});
  ASSERT_EQ(file.series.size(), 4U);
  for (const Series& each : file.series) {
    EXPECT_EQ(each.measurements.size(), 7U);
    EXPECT_EQ(each.knob, (Knob{"sm_clock", "MHz"}));
    EXPECT_EQ(each.device, "RTX 5090");
  }
  const Series& fast = series(file, "Gemma-4-31B INT4 MTP vLLM 14001");
  EXPECT_NEAR(at(fast, 2122).work.items_per_second(), 737.58, 1e-9);
  EXPECT_NEAR(at(fast, 2122).energy.value->value(), 313.63 / 737.58, 1e-9);
}

TEST(ImportData, reads_kernel_tuners_clocks) {
  const auto file = data("kernel_tuner_a4000_freq_power");
  ASSERT_EQ(file.series.size(), 1U);
  const Series& only = file.series[0];
  EXPECT_EQ(only.device, "NVIDIA RTX A4000");
  EXPECT_EQ(only.knob, (Knob{"sm_clock", "MHz"}));
  ASSERT_EQ(only.measurements.size(), 10U);
  EXPECT_EQ(at(only, 2100).conditions.sm_clock, Megahertz(1739.7175));
  EXPECT_EQ(at(only, 2100).work.step_time, Seconds(77.5378 / 1000));
  EXPECT_NEAR(at(only, 405).energy.value->value(), 43.928 * 0.3325863, 1e-9);
}

TEST(ImportData, carries_the_study_inside_the_program) {
  for (const auto& [path, embedded] :
       {std::pair("data/rtx3090_vit_b16.csv", embedded_study_csv()),
        {"data/rtx3090_vit_b16.notes.json", embedded_study_notes()},
        {"data/rtx3090_vit_b16.claims.csv", embedded_study_claims()}}) {
    const auto file = read_text_file(path, std::size_t{1} << 20U);
    ASSERT_TRUE(file) << path;
    EXPECT_TRUE(*file == embedded) << path;
  }
}

TEST(ImportData, reads_the_30_limits_that_the_studys_article_claims) {
  const auto claims = import_claims(embedded_study_claims(), "claims.csv");
  ASSERT_TRUE(claims) << claims.error().message;
  ASSERT_EQ(claims->size(), 30U);
  EXPECT_EQ((*claims)[0].limit, Watts(280));
  EXPECT_EQ((*claims)[0].percent, 80);
  const auto file = data("rtx3090_vit_b16");
  for (const Claim& claim : *claims) {
    EXPECT_TRUE(std::ranges::any_of(file.series, [&claim](const Series& each) {
      return each.labels == claim.labels;
    })) << text(claim.labels);
  }
}

TEST(ImportData, refuses_claims_without_figures) {
  EXPECT_EQ(import_claims("mode,percent\ntrain,80\n", "claims.csv").error().message,
            "claims.csv:1: needed columns percent and claimed_w");
  EXPECT_EQ(import_claims("percent,claimed_w\n80,zero\n", "claims.csv").error().message,
            "claims.csv:2: column claimed_w: 'zero' is not a number; needed watts such as 300");
}

}  // namespace
}  // namespace halfwatt

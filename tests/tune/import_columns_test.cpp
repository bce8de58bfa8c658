#include "tune/import_columns.h"

#include <gtest/gtest.h>

#include "tune/labels.h"

namespace halfwatt {
namespace {

ColumnRole role(std::string_view name) {
  const auto meaning = meaning_of(name);
  EXPECT_TRUE(meaning) << name;
  return meaning ? meaning->role : ColumnRole::provenance;
}

double base(std::string_view name, double value) {
  const auto meaning = meaning_of(name);
  EXPECT_TRUE(meaning && meaning->unit) << name;
  return meaning && meaning->unit ? meaning->unit->base(value) : 0;
}

TEST(Columns, compares_names_without_case_brackets_and_slashes) {
  EXPECT_EQ(plain_name("Power Limit (W)"), "power_limit_w");
  EXPECT_EQ(plain_name("power.limit [W]"), "power_limit_w");
  EXPECT_EQ(plain_name("Throughput (img/s)"), "throughput_img_per_s");
  EXPECT_EQ(plain_name("fan %"), "fan_percent");
  EXPECT_EQ(plain_name(" __ "), "");
}

TEST(Columns, knows_a_power_limit_in_each_unit) {
  for (const auto* name : {"power_limit_w", "power_limit", "Power Cap [W]", "nvml_pwr_limit"}) {
    EXPECT_EQ(role(name), ColumnRole::limit) << name;
    EXPECT_EQ(base(name, 300), 300);
  }
  EXPECT_EQ(base("power_limit_mw", 300'000), 300);
  EXPECT_EQ(base("power_limit_kw", 0.3), 300);
  EXPECT_EQ(role("power_limit_percent"), ColumnRole::limit_share);
  EXPECT_EQ(role("power_limit_%"), ColumnRole::limit_share);
}

TEST(Columns, knows_times_with_their_unit_and_work) {
  for (const auto* name : {"ms_per_batch", "ms_per_step", "step_ms", "batch_time_ms", "time_ms",
                           "ms/it", "milliseconds", "time_per_step_ms"}) {
    EXPECT_EQ(role(name), ColumnRole::time) << name;
    EXPECT_EQ(base(name, 250), 0.25) << name;
    EXPECT_TRUE(meaning_of(name)->per == Per::step || meaning_of(name)->per == Per::unsaid);
  }
  EXPECT_EQ(base("seconds", 2), 2);
  EXPECT_EQ(base("us_per_token", 2), 2e-6);
  EXPECT_EQ(meaning_of("us_per_token")->item, "token");
  EXPECT_EQ(meaning_of("time_per_epoch_s")->per, Per::epoch);
  EXPECT_EQ(meaning_of("window_time_s")->per, Per::window);
}

TEST(Columns, knows_rates_with_their_item) {
  for (const auto& [name, item] : {std::pair("images_per_s", "image"),
                                   {"img/sec", "image"},
                                   {"tokens_per_s", "token"},
                                   {"tok/s", "token"},
                                   {"samples_per_second", "sample"},
                                   {"throughput", "item"},
                                   {"Throughput (img/s)", "image"},
                                   {"fps", "frame"}}) {
    EXPECT_EQ(role(name), ColumnRole::rate) << name;
    EXPECT_EQ(meaning_of(name)->item, item) << name;
  }
  EXPECT_EQ(meaning_of("steps_per_s")->per, Per::step);
  EXPECT_EQ(meaning_of("it/s")->per, Per::step);
}

TEST(Columns, knows_energy_and_power) {
  EXPECT_EQ(role("energy_total_j"), ColumnRole::energy);
  EXPECT_EQ(base("energy_wh", 2), 7200);
  EXPECT_EQ(base("energy_mj", 2000), 2);
  EXPECT_EQ(meaning_of("energy_per_epoch_j")->per, Per::epoch);
  EXPECT_EQ(meaning_of("j/token")->item, "token");
  EXPECT_EQ(role("avg_power_w"), ColumnRole::power);
  EXPECT_EQ(role("power.draw [W]"), ColumnRole::power);
}

TEST(Columns, leaves_names_alone_that_only_begin_or_end_like_known_ones) {
  for (const auto* name : {"energy_max_over_min_gpu", "time", "step", "tokens_s", "power_min",
                           "power_limit_w_2", "s", "w", "layers", ""}) {
    EXPECT_FALSE(meaning_of(name)) << name;
  }
}

TEST(Columns, sees_a_speed_behind_which_more_is_said) {
  EXPECT_EQ(variant_of("tokens_per_s_code")->item, "token");
  EXPECT_EQ(variant_of("ms_per_batch_p99")->role, ColumnRole::time);
  EXPECT_TRUE(variant_of("throughput_std"));
  for (const auto* name : {"tokens_per_s", "seconds_since_start", "energy_j_gpu0", "layers"}) {
    EXPECT_FALSE(variant_of(name)) << name;
  }
}

TEST(Columns, tells_choices_from_what_names_the_job) {
  for (const auto* name : {"precision", "batch", "Batch Size", "engine", "accumulation",
                           "recompute", "placement", "mem_clock_mhz", "memory_clock"}) {
    EXPECT_TRUE(is_knob_label(name)) << name;
  }
  for (const auto* name : {"workload", "mode", "model", "gpu", "device", "dataset", "optimizer",
                           "concurrency", "n_gpus", "layers", ""}) {
    EXPECT_FALSE(is_knob_label(name)) << name;
  }
}

}  // namespace
}  // namespace halfwatt

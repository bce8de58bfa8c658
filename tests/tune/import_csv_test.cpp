#include "tune/import_csv.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tune/import_text.h"

namespace halfwatt {
namespace {

double watts(const Measurement& measurement) {
  return measurement.setting.number("power_limit").value_or(-1);
}

TEST(ImportCsv, reads_a_limit_and_a_time) {
  const auto file = imported("power_limit_w,ms_per_batch\n300,250\n310,240\n");
  ASSERT_EQ(file.series.size(), 1U);
  const Series& series = file.series[0];
  EXPECT_TRUE(series.labels.empty());
  EXPECT_EQ(series.device, "unknown");
  EXPECT_EQ(series.knob, power_limit_knob());
  EXPECT_EQ(series.provenance, Provenance::recorded);
  EXPECT_EQ(series.source, "caps.csv");
  ASSERT_EQ(series.measurements.size(), 2U);
  const Measurement& second = series.measurements[1];
  EXPECT_EQ(watts(second), 310);
  EXPECT_EQ(second.conditions.requested_limit, Watts(310));
  EXPECT_EQ(second.started, Seconds(1));
  EXPECT_EQ(second.work.steps, 1);
  EXPECT_EQ(second.work.step_time, Seconds(0.24));
  EXPECT_EQ(second.work.unit, "step");
  EXPECT_EQ(second.numerical_state, NumericalState::unknown);
  EXPECT_FALSE(second.energy.value);
  EXPECT_TRUE(file.remarks.empty());
}

TEST(ImportCsv, splits_series_by_labels_in_the_order_they_begin) {
  const auto file = imported(
      "model,precision,power_limit_w,time_s\n"
      "vit,fp32,300,2\nvit,fp16,300,1\nvit,fp32,310,1.9\n");
  ASSERT_EQ(file.series.size(), 2U);
  EXPECT_EQ(file.series[0].labels, (Labels{{"model", "vit"}, {"precision", "fp32"}}));
  EXPECT_EQ(text(file.series[1].labels), "vit fp16");
  EXPECT_EQ(watts(file.series[0].measurements[1]), 310);
}

TEST(ImportCsv, does_not_care_about_the_order_of_columns) {
  const auto one = imported(
      "gpu,batch,layers,power_limit_w,ms_per_batch,temperature_c\n"
      "A,8,12,100,9,50\nA,8,12,200,5,60\nA,8,12,300,4,70\n"
      "A,8,24,100,19,50\nA,8,24,200,15,60\nA,8,24,300,14,70\n");
  const auto other = imported(
      "temperature_c,ms_per_batch,power_limit_w,layers,batch,gpu\n"
      "50,9,100,12,8,A\n60,5,200,12,8,A\n70,4,300,12,8,A\n"
      "50,19,100,24,8,A\n60,15,200,24,8,A\n70,14,300,24,8,A\n");
  ASSERT_EQ(one.series.size(), 2U);
  ASSERT_EQ(other.series.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(label(one.series[i].labels, "layers"), label(other.series[i].labels, "layers"));
    EXPECT_EQ(one.series[i].device, other.series[i].device);
    for (std::size_t j = 0; j < 3; ++j) {
      const Measurement& left = one.series[i].measurements[j];
      const Measurement& right = other.series[i].measurements[j];
      EXPECT_EQ(left.setting, right.setting);
      EXPECT_EQ(left.work.step_time, right.work.step_time);
      EXPECT_EQ(left.work.items_per_step, 8);
      EXPECT_EQ(left.conditions.temperature_end, right.conditions.temperature_end);
    }
  }
}

TEST(ImportCsv, counts_items_by_the_batch) {
  const std::string csv = "batch,power_limit_w,ms_per_batch\n160,300,250\n";
  const auto file = imported(csv);
  EXPECT_EQ(file.series[0].measurements[0].work.items_per_second(), 640);
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "item");
  EXPECT_EQ(label(file.series[0].labels, "batch"), "160");
  EXPECT_EQ(imported(csv, {.items = "image"}).series[0].measurements[0].work.unit, "image");
}

TEST(ImportCsv, does_not_take_a_batch_for_an_epoch) {
  const auto file = imported("batch,power_limit_w,time_per_epoch_s\n160,300,25\n");
  EXPECT_EQ(file.series[0].measurements[0].work.items_per_step, 1);
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "epoch");
  const auto window = imported("power_limit_w,window_time_s\n300,25\n");
  EXPECT_EQ(window.series[0].measurements[0].work.unit, "window");
}

TEST(ImportCsv, refuses_an_item_name_where_nothing_counts_items) {
  EXPECT_EQ(
      refusal("power_limit_w,ms_per_batch\n300,250\n", {.items = "image"}),
      "caps.csv:1: a step holds an unknown number of images: needed a batch column, or no "
      "item name (--items)");
}

TEST(ImportCsv, turns_a_rate_into_a_time_of_one_item) {
  const auto file = imported("power_limit_w,tokens_per_s\n300,40\n");
  EXPECT_EQ(file.series[0].measurements[0].work.step_time, Seconds(0.025));
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "token");
  EXPECT_EQ(imported("power_limit_w,throughput\n300,40\n").series[0].measurements[0].work.unit,
            "item");
}

TEST(ImportCsv, counts_items_of_steps_a_second_by_the_batch) {
  const auto file = imported("power_limit_w,it/s,batch_size\n300,4,32\n");
  EXPECT_EQ(file.series[0].measurements[0].work.step_time, Seconds(0.25));
  EXPECT_EQ(file.series[0].measurements[0].work.items_per_second(), 128);
}

TEST(ImportCsv, takes_average_power_times_time_for_energy) {
  const auto file = imported("power_limit_w,ms_per_step,avg_power_w\n300,500,280\n");
  const Energy& energy = file.series[0].measurements[0].energy;
  EXPECT_EQ(energy.value, Joules(140));
  EXPECT_EQ(energy.method, EnergyMethod::average_power);
}

TEST(ImportCsv, believes_energy_but_not_that_a_counter_measured_it) {
  const auto file = imported(
      "power_limit_w,ms_per_step,energy_j,avg_power_w\n"
      "300,500,150,280\n310,500,152,281\n");
  const Energy& energy = file.series[0].measurements[0].energy;
  EXPECT_EQ(energy.value, Joules(150));
  EXPECT_EQ(energy.method, EnergyMethod::power_integral);
  EXPECT_TRUE(file.remarks.empty());
}

TEST(ImportCsv, sees_that_energy_was_computed_from_the_power) {
  const auto file = imported(
      "power_limit_w,ms_per_step,energy_j,avg_power_w\n"
      "300,500,140,280\n310,500,140.5,281\n");
  EXPECT_EQ(file.series[0].measurements[0].energy.method, EnergyMethod::average_power);
}

TEST(ImportCsv, says_where_energy_and_power_disagree) {
  const auto file = imported(
      "power_limit_w,ms_per_step,energy_j,avg_power_w\n"
      "300,500,140,280\n310,500,100,300\n");
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_EQ(
      file.remarks[0],
      "caps.csv: energy and power times time differ by up to 50 % (line 3); the energy is "
      "used");
}

TEST(ImportCsv, multiplies_energy_of_an_item_by_the_items_of_a_step) {
  const auto file = imported("batch,power_limit_w,ms_per_batch,j_per_image\n10,300,500,14\n");
  EXPECT_EQ(file.series[0].measurements[0].energy.value, Joules(140));
  EXPECT_EQ(file.series[0].measurements[0].joules_per_item(), Joules(14));
}

TEST(ImportCsv, leaves_energy_out_that_is_not_of_the_work_that_is_timed) {
  const auto file = imported("power_limit_w,tokens_per_s,energy_j\n300,40,5000\n");
  EXPECT_FALSE(file.series[0].measurements[0].energy.value);
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_EQ(file.remarks[0],
            "caps.csv: column energy_j is not used: it is not the energy of the work that "
            "tokens_per_s is about");
}

TEST(ImportCsv, uses_one_of_several_energies_and_powers_and_says_which) {
  const auto file = imported(
      "power_limit_w,time_per_epoch_s,joules,energy_per_epoch_j,power_w,avg_power_w\n"
      "300,10,2000,2500,200,250\n");
  EXPECT_EQ(file.series[0].measurements[0].energy.value, Joules(2500));
  ASSERT_EQ(file.remarks.size(), 2U);
  EXPECT_EQ(file.remarks[0],
            "caps.csv: column joules is not used: energy_per_epoch_j is used instead");
  EXPECT_EQ(file.remarks[1],
            "caps.csv: column power_w is not used: avg_power_w is used instead");
}

TEST(ImportCsv, reads_what_was_seen_into_the_conditions) {
  const auto file = imported(
      "power_limit_w,time_s,temperature_start_c,temp,fan %,memory_mib,avg_sm_clock_mhz,"
      "mem_clock_mhz\n300,1,40,65,55,9640,1410,9501\n310,1,41,66,56,9641,1420,9502\n");
  ASSERT_EQ(file.series.size(), 1U);
  const Conditions& seen = file.series[0].measurements[0].conditions;
  EXPECT_EQ(seen.temperature_start, Celsius(40));
  EXPECT_EQ(seen.temperature_end, Celsius(65));
  EXPECT_EQ(seen.fan_percent, 55);
  EXPECT_EQ(seen.memory_used, Bytes(9640.0 * 1024 * 1024));
  EXPECT_EQ(seen.sm_clock, Megahertz(1410));
  EXPECT_EQ(seen.memory_clock, Megahertz(9501));
}

TEST(ImportCsv, leaves_absent_what_a_cell_does_not_tell) {
  const auto file = imported(
      "power_limit_w,ms_per_step,avg_power_w,sm_clock_mhz,fan_percent\n"
      "300,500,,N/A,[N/A]\n310,490,300,1410,0\n320,480,305,1420,60\n");
  const auto& rows = file.series[0].measurements;
  EXPECT_FALSE(rows[0].energy.value);
  EXPECT_EQ(rows[0].energy.method, EnergyMethod::none);
  EXPECT_FALSE(rows[0].conditions.sm_clock);
  EXPECT_FALSE(rows[0].conditions.fan_percent);
  EXPECT_EQ(rows[1].conditions.sm_clock, Megahertz(1410));
  EXPECT_EQ(rows[1].conditions.fan_percent, 0);
}

TEST(ImportCsv, names_the_card_and_makes_it_a_label_only_where_there_are_several) {
  const auto one = imported("gpu,power_limit_w,time_s\nA40,300,1\nA40,310,1\n");
  EXPECT_EQ(one.series[0].device, "A40");
  EXPECT_TRUE(one.series[0].labels.empty());
  const auto two = imported("gpu,power_limit_w,time_s\nA40,300,1\nV100,300,1\n");
  ASSERT_EQ(two.series.size(), 2U);
  EXPECT_EQ(two.series[1].device, "V100");
  EXPECT_EQ(two.series[1].labels, (Labels{{"gpu", "V100"}}));
}

TEST(ImportCsv, takes_where_a_row_comes_from_and_which_repeat_it_is_for_no_label) {
  const auto file = imported(
      "source_file,repeat,timestamp,power_limit_w,time_s\n"
      "a.py,1,10:00:01,300,1\nb.py,2,10:00:09,310,1\n");
  ASSERT_EQ(file.series.size(), 1U);
  EXPECT_TRUE(file.series[0].labels.empty());
}

TEST(ImportCsv, takes_equal_limits_of_a_series_as_repeats_and_says_so) {
  const auto file = imported("power_limit_w,time_s\n300,1\n310,0.9\n300,1.1\n300,1.05\n");
  ASSERT_EQ(file.series.size(), 1U);
  EXPECT_EQ(file.series[0].measurements.size(), 4U);
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_EQ(
      file.remarks[0],
      "caps.csv: 2 rows repeat a power_limit_w of the same series (first: lines 2 and 4); "
      "taken as repeated measurements");
}

TEST(ImportCsv, reads_one_point) {
  EXPECT_EQ(imported("power_limit_w,time_s\n300,1\n").series[0].measurements.size(), 1U);
}

TEST(ImportCsv, reads_a_numerical_state) {
  const std::string csv = "power_limit_w,time_s,numerical_state\n300,1,live\n310,1,dead\n";
  const auto file = imported(csv);
  ASSERT_EQ(file.series.size(), 1U);
  EXPECT_EQ(file.series[0].measurements[0].numerical_state, NumericalState::live);
  EXPECT_EQ(file.series[0].measurements[1].numerical_state, NumericalState::dead);
  EXPECT_EQ(refusal("power_limit_w,time_s,numerical_state\n300,1,zombie\n"),
            "caps.csv:2: column numerical_state: 'zombie' is no numerical state; needed live, "
            "skipping, stalled, dead or unknown");
}

TEST(ImportCsv, says_which_columns_there_are_where_none_tells_the_limit_or_the_speed) {
  EXPECT_EQ(
      refusal("watt_cap,time_s\n300,1\n"),
      "caps.csv:1: no column tells the power limit; needed power_limit_w, or --x NAME=UNIT "
      "with one of watt_cap and time_s");
  EXPECT_EQ(
      refusal("power_limit_w,score\n300,1\n"),
      "caps.csv:1: no column tells how fast it was; needed one such as ms_per_batch, "
      "time_s, throughput or tokens_per_s, or --y NAME=UNIT with one of power_limit_w and "
      "score");
  EXPECT_EQ(
      refusal("power_limit_percent,time_s\n80,1\n"),
      "caps.csv:1: column power_limit_percent is a share of a limit that the file does not "
      "tell; needed power_limit_w in watts");
}

TEST(ImportCsv, refuses_to_choose_between_two_speeds_or_two_limits) {
  EXPECT_EQ(refusal("power_limit_w,time_ms,time_s\n300,1000,1\n"),
            "caps.csv:1: columns time_ms and time_s both tell the speed; choose one: --y "
            "time_ms");
  EXPECT_EQ(
      refusal("power_limit_w,ms_per_step,images_per_s,tokens_per_s\n300,1,1,1\n"),
      "caps.csv:1: columns ms_per_step, images_per_s and tokens_per_s all tell the speed; "
      "choose one: --y ms_per_step");
  EXPECT_EQ(
      refusal("power_limit_w,power_cap_w,time_s\n300,300,1\n"),
      "caps.csv:1: columns power_limit_w and power_cap_w both tell the power limit; choose "
      "one: --x power_limit_w");
}

TEST(ImportCsv, refuses_milliwatts_kilowatts_and_shares_called_watts) {
  EXPECT_EQ(
      refusal("power_limit_w,time_s\n300,1\n310000,1\n"),
      "caps.csv:3: column power_limit_w: '310000' looks like milliwatts; needed watts such "
      "as 300 (or say the unit: --x power_limit_w=UNIT)");
  EXPECT_EQ(refusal("power_limit_w,time_s\n0.8,1\n"),
            "caps.csv:2: column power_limit_w: '0.8' looks like kilowatts or a share; needed "
            "watts such as 300 (or say the unit: --x power_limit_w=UNIT)");
  EXPECT_EQ(watts(imported("power_limit_w,time_s\n310000,1\n", {.x = "power_limit_w=mW"})
                      .series[0]
                      .measurements[0]),
            310);
  EXPECT_EQ(watts(imported("power_limit_mw,time_s\n310000,1\n").series[0].measurements[0]),
            310);
}

TEST(ImportCsv, refuses_draw_and_energy_that_are_off_by_a_thousand) {
  EXPECT_EQ(refusal("power_limit_w,time_s,avg_power_w\n300,1,280000\n"),
            "caps.csv:2: column avg_power_w: '280000' is 2.8e+05 W: milliwatts?");
  EXPECT_EQ(refusal("power_limit_w,time_s,energy_j\n300,10,0.28\n"),
            "caps.csv:2: column energy_j: '0.28' over that time is 0.028 W: kilojoules?");
}

TEST(ImportCsv, names_the_cell_of_every_figure_that_is_not_positive) {
  for (const auto& [cell, why] : {std::pair("nan", "'nan' is not finite"),
                                  {"inf", "'inf' is not finite"},
                                  {"-3", "'-3' is negative"},
                                  {"0", "'0' is zero"},
                                  {"x", "'x' is not a number"},
                                  {"", "empty"}}) {
    EXPECT_EQ(refusal(std::string("power_limit_w,ms_per_step\n300,2\n310,") + cell + "\n"),
              std::string("caps.csv:3: column ms_per_step: ") + why +
                  "; needed milliseconds such as 12.5");
    EXPECT_EQ(
        refusal(std::string("power_limit_w,ms_per_step\n") + cell + ",2\n"),
        std::string("caps.csv:2: column power_limit_w: ") + why + "; needed watts such as 300");
  }
  EXPECT_EQ(
      refusal("power_limit_w,tokens_per_s\n300,-1\n"),
      "caps.csv:2: column tokens_per_s: '-1' is negative; needed tokens per s such as 120");
  EXPECT_EQ(refusal("power_limit_w,time_s,energy_j\n300,1,-4\n"),
            "caps.csv:2: column energy_j: '-4' is negative; needed joules such as 105");
  EXPECT_EQ(refusal("power_limit_w,time_s,temp_c\n300,1,-4\n"),
            "caps.csv:2: column temp_c: '-4' is not a number of zero or more; needed degrees "
            "Celsius such as 65");
  EXPECT_EQ(
      refusal("power_limit_w,time_s,batch\n300,1,2.5\n"),
      "caps.csv:2: column batch: '2.5' is no count; needed items of one step such as 160");
  EXPECT_EQ(
      refusal("power_limit_w,time_s\n300,1e-300\n"),
      "caps.csv:2: column time_s: '1e-300' is beyond belief; needed seconds such as 0.35");
}

TEST(ImportCsv, reads_foreign_names_when_told) {
  const auto file = imported("cap,took\n300,250\n", {.x = "cap=W", .y = "took=ms"});
  EXPECT_EQ(file.series[0].knob, power_limit_knob());
  EXPECT_EQ(file.series[0].measurements[0].work.step_time, Seconds(0.25));
  const auto rate = imported("cap,score\n300,4\n", {.x = "cap=W", .y = "score=images/s"});
  EXPECT_EQ(rate.series[0].measurements[0].work.unit, "image");
  const auto suffix = imported("cap_w,took_ms\n300,250\n", {.x = "cap_w", .y = "took_ms"});
  EXPECT_EQ(suffix.series[0].knob, power_limit_knob());
  EXPECT_EQ(suffix.series[0].measurements[0].work.step_time, Seconds(0.25));
}

TEST(ImportCsv, says_what_a_flag_got_wrong) {
  const std::string csv = "power_limit_w,time_s,gpu\n300,1,A\n";
  EXPECT_EQ(refusal(csv, {.x = "volts"}),
            "caps.csv:1: --x volts: no such column; there are power_limit_w, time_s and gpu");
  EXPECT_EQ(refusal(csv, {.y = "gpu"}),
            "caps.csv:1: --y gpu: is it a time or a rate? Say --y gpu=ms or --y gpu=images/s");
  EXPECT_EQ(refusal(csv, {.x = "time_s", .y = "time_s"}),
            "caps.csv:1: column time_s cannot be both --x and --y");
  EXPECT_EQ(refusal(csv, {.labels = {"time_s"}}),
            "caps.csv:1: --label time_s: is the speed already");
  EXPECT_EQ(
      refusal(csv, {.ignore = {"volts"}}),
      "caps.csv:1: --ignore volts: no such column; there are power_limit_w, time_s and gpu");
}

TEST(ImportCsv, reads_along_a_clock_where_no_limit_was_set) {
  const auto file = imported(
      "sm_clock_mhz,mem_clock_mhz,measured_core_freq_mhz,time_ms\n"
      "1400,7001,1395,10\n1500,7001,1490,9\n1400,810,1395,19\n");
  ASSERT_EQ(file.series.size(), 2U);
  EXPECT_EQ(file.series[0].knob, (Knob{"sm_clock", "MHz"}));
  EXPECT_EQ(file.series[0].measurements[1].setting.number("sm_clock"), 1500);
  EXPECT_EQ(file.series[0].measurements[1].conditions.sm_clock, Megahertz(1490));
  EXPECT_FALSE(file.series[0].measurements[1].conditions.requested_limit);
  EXPECT_EQ(text(file.series[1].labels), "810");
}

TEST(ImportCsv, reads_along_any_column_when_told) {
  const auto file = imported("power_limit_w,batch,ms_per_batch\n300,8,10\n300,16,18\n350,8,9\n",
                             {.x = "batch"});
  ASSERT_EQ(file.series.size(), 2U);
  EXPECT_EQ(file.series[0].knob, (Knob{"batch", ""}));
  EXPECT_EQ(text(file.series[0].labels), "300");
  EXPECT_EQ(file.series[0].measurements[1].work.items_per_step, 16);
}

TEST(ImportCsv, suggests_the_clock_where_the_limit_never_changes) {
  const auto file = imported("power_limit_w,sm_clock_mhz,time_s\n300,1400,1\n300,1500,0.9\n");
  ASSERT_EQ(file.remarks.size(), 2U);
  EXPECT_EQ(file.remarks[0],
            "caps.csv: power_limit_w never changes, sm_clock_mhz does: --x sm_clock_mhz reads "
            "along it");
}

TEST(ImportCsv, takes_a_clock_that_was_set_at_every_limit_for_a_label) {
  std::string csv = "power_limit_w,sm_clock_mhz,time_s\n";
  for (const auto* clock : {"1400", "1500", "1600"}) {
    for (const auto* limit : {"300", "310", "320", "330"}) {
      csv += std::string(limit) + "," + clock + ",1\n";
    }
  }
  EXPECT_EQ(imported(csv).series.size(), 3U);
}

TEST(ImportCsv, takes_an_unknown_number_that_differs_from_row_to_row_for_no_label) {
  const auto file = imported(
      "power_limit_w,time_s,loss,rounded\n"
      "300,1,2.31,98\n310,1,2.32,98\n320,1,2.29,99\n330,1,2.30,99\n");
  ASSERT_EQ(file.series.size(), 1U);
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_EQ(
      file.remarks[0],
      "caps.csv: not used, since differing from row to row: loss and rounded (--label loss "
      "splits by it)");
}

TEST(ImportCsv, takes_an_unknown_number_whose_sweeps_repeat_for_a_label) {
  std::string csv = "power_limit_w,time_s,layers\n";
  for (const auto* layers : {"12", "24"}) {
    for (const auto* limit : {"300", "310", "320"}) {
      csv += std::string(limit) + ",1," + layers + "\n";
    }
  }
  const auto file = imported(csv);
  ASSERT_EQ(file.series.size(), 2U);
  EXPECT_EQ(file.series[1].labels, (Labels{{"layers", "24"}}));
  EXPECT_EQ(imported(csv, {.ignore = {"layers"}}).series.size(), 1U);
}

TEST(ImportCsv, takes_unknown_words_for_labels_unless_every_row_has_its_own) {
  const auto labels = imported(
      "power_limit_w,time_s,cooling\n"
      "300,1,air\n310,1,air\n300,1,water\n310,1,water\n");
  EXPECT_EQ(labels.series.size(), 2U);
  const auto comments = imported(
      "power_limit_w,time_s,said\n"
      "300,1,fine\n310,1,loud\n320,1,louder\n330,1,hot\n");
  EXPECT_EQ(comments.series.size(), 1U);
  EXPECT_EQ(comments.remarks.size(), 1U);
  EXPECT_EQ(imported("power_limit_w,time_s,said\n300,1,fine\n310,1,loud\n320,1,louder\n",
                     {.labels = {"said"}})
                .series.size(),
            3U);
}

TEST(ImportCsv, leaves_a_column_without_a_name_out_and_says_so) {
  const auto file = imported(",power_limit_w,time_s\n0,300,1\n1,310,1\n");
  ASSERT_EQ(file.series.size(), 1U);
  ASSERT_EQ(file.remarks.size(), 1U);
  EXPECT_EQ(file.remarks[0], "caps.csv: column 1 has no name and is not used");
}

TEST(ImportCsv, reads_the_one_speed_behind_which_more_is_said) {
  const auto file = imported("power_limit_w,tokens_per_s_code\n300,40\n");
  EXPECT_EQ(file.series[0].measurements[0].work.unit, "token");
  const auto spread = imported("power_limit_w,ms_per_step,ms_per_step_p99\n300,40,60\n");
  EXPECT_EQ(spread.series[0].measurements[0].work.step_time, Seconds(0.04));
  ASSERT_EQ(spread.remarks.size(), 1U);
  EXPECT_EQ(spread.remarks[0], "caps.csv: not used: ms_per_step_p99");
}

TEST(ImportCsv, reads_a_file_with_the_notes_beside_it) {
  const auto folder = temporary_folder();
  std::ofstream(folder / "beside.csv") << "batch,power_limit_w,ms_per_batch\n8,300,10\n";
  std::ofstream(folder / "beside.notes.json")
      << R"({"schema": "halfwatt.notes/1", "item": "image", "terms": "own figures"})";
  const auto file = import_csv(folder / "beside.csv");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->series[0].measurements[0].work.unit, "image");
  EXPECT_EQ(file->series[0].source, (folder / "beside.csv").string());
  EXPECT_EQ(file->terms, "own figures");
  std::filesystem::resize_file(folder / "beside.notes.json", 0);
  const auto bad = import_csv(folder / "beside.csv");
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message,
            (folder / "beside.notes.json").string() + ": empty; needed JSON");
}

TEST(ImportCsv, refuses_a_file_that_is_too_large) {
  const auto path = temporary_folder() / "too_large.csv";
  std::ofstream(path) << "power_limit_w,time_s\n";
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20U) + 1);  // sparse: costs no disk
  const auto file = import_csv(path);
  std::filesystem::remove_all(path.parent_path());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, path.string() + ": larger than 64 MiB");
}

}  // namespace
}  // namespace halfwatt

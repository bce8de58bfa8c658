#include "measure/setting.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halfwatt {
namespace {

TEST(Setting, keeps_its_knobs_in_the_order_they_were_set) {
  Setting setting;
  setting.set("precision", "tf32");
  setting.set("power_limit", 300.0);
  setting.set("batch", 64.0);
  std::vector<std::string> names;
  for (const auto& [name, value] : setting.values()) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"precision", "power_limit", "batch"}));
}

TEST(Setting, replaces_a_value_in_its_place) {
  Setting setting;
  setting.set("power_limit", 300.0);
  setting.set("batch", 64.0);
  setting.set("power_limit", 250.0);
  EXPECT_EQ(text(setting), "power_limit=250 batch=64");
  setting.set("batch", "largest");
  EXPECT_EQ(text(setting), "power_limit=250 batch=largest");
}

TEST(Setting, has_a_number_only_where_one_was_set) {
  Setting setting;
  setting.set("power_limit", 300.0);
  setting.set("precision", "tf32");
  EXPECT_EQ(setting.number("power_limit"), 300.0);
  EXPECT_EQ(setting.number("precision"), std::nullopt);
  EXPECT_EQ(setting.number("batch"), std::nullopt);
}

TEST(Setting, equals_another_of_the_same_knobs_in_the_same_order) {
  Setting one;
  one.set("power_limit", 300.0);
  Setting other = one;
  EXPECT_EQ(one, other);
  other.set("power_limit", 310.0);
  EXPECT_NE(one, other);
}

TEST(Setting, is_written_as_people_write_numbers) {
  EXPECT_EQ(number_text(300), "300");
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(number_text(343.80000001), "343.8");
  EXPECT_EQ(number_text(1.0 / 3), "0.333333");
  EXPECT_EQ(text(KnobValue("bf16")), "bf16");
  EXPECT_EQ(text(Setting()), "");
}

TEST(Knob, of_the_power_limit_is_in_watts) {
  EXPECT_EQ(power_limit_knob(), (Knob{"power_limit", "W"}));
}

}  // namespace
}  // namespace halfwatt

#include "measure/command_template.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

const std::vector<KnobValues> kBatch = {{{"batch", "", {}}, {32., 64.}}};

std::vector<std::string> fill(std::vector<std::string> words, double batch) {
  const auto command = CommandTemplate::make(std::move(words), kBatch);
  EXPECT_TRUE(command) << command.error().message;
  Setting setting;
  setting.set("batch", batch);
  return command->fill(setting).value();
}

using Words = std::vector<std::string>;

TEST(Knob, is_read_as_numbers_and_words) {
  const auto knob = parse_knob("precision=fp16,8,bf16");
  ASSERT_TRUE(knob);
  EXPECT_EQ(knob->knob.name, "precision");
  EXPECT_EQ(knob->values, (std::vector<KnobValue>{"fp16", 8., "bf16"}));
}

TEST(Knob, keeps_a_value_as_it_was_typed_where_we_would_write_it_otherwise) {
  const auto knob = parse_knob("n=0010,16777216,1e-4");
  ASSERT_TRUE(knob);
  EXPECT_EQ(knob->values, (std::vector<KnobValue>{"0010", "16777216", "1e-4"}));
}

TEST(Knob, is_refused_with_the_flag_in_one_line) {
  for (const char* typed : {"", "batch", "=1", "batch=", "batch=1,,2", "batch=1,1", "2b=1",
                            "power_limit=200", "a b=1"}) {
    const auto knob = parse_knob(typed);
    ASSERT_FALSE(knob) << typed;
    EXPECT_EQ(knob.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(knob.error().message.find("--knob"), 0U);
    EXPECT_EQ(knob.error().message.find('\n'), std::string::npos);
  }
}

TEST(CommandTemplate, puts_values_where_the_knob_stands) {
  EXPECT_EQ(fill({"t.py", "--bs={batch}", "{batch}x{batch}"}, 32),
            (Words{"t.py", "--bs=32", "32x32"}));
}

TEST(CommandTemplate, leaves_other_braces_alone) {
  EXPECT_EQ(fill({"t", "{batch}", "{\"a\":{\"b\":1}}", "{}", "{other}", "{batch"}, 1),
            (Words{"t", "1", "{\"a\":{\"b\":1}}", "{}", "{other}", "{batch"}));
}

TEST(CommandTemplate, writes_a_doubled_brace_once) {
  EXPECT_EQ(fill({"t", "{batch}{{batch}}"}, 7), (Words{"t", "7{batch}"}));
}

TEST(CommandTemplate, needs_a_command_that_uses_every_knob) {
  EXPECT_FALSE(CommandTemplate::make({}, {}));
  const auto unused = CommandTemplate::make({"t.py", "{{batch}}"}, kBatch);
  ASSERT_FALSE(unused);
  EXPECT_EQ(unused.error().message,
            "--knob batch: the command does not use it; needed {batch} where its value is to "
            "stand");
  const auto twice = CommandTemplate::make({"{batch}"}, {kBatch.front(), kBatch.front()});
  EXPECT_FALSE(twice);
}

TEST(CommandTemplate, needs_a_value_of_every_knob) {
  const auto command = CommandTemplate::make({"{batch}"}, kBatch);
  ASSERT_TRUE(command);
  EXPECT_FALSE(command->fill(Setting{}));
}

TEST(ItemsExpression, multiplies_numbers_and_knobs) {
  Setting setting;
  setting.set("batch", 32.);
  EXPECT_EQ(ItemsExpression::parse("32", {})->value(setting).value(), 32);
  EXPECT_EQ(ItemsExpression::parse("2*{batch}", kBatch)->value(setting).value(), 64);
}

TEST(ItemsExpression, refuses_what_is_no_number_above_zero) {
  for (const char* typed : {"", "0", "-1", "x", "{other}", "2*", "2+{batch}", "nan"}) {
    EXPECT_FALSE(ItemsExpression::parse(typed, kBatch)) << typed;
  }
  Setting setting;
  setting.set("batch", std::string("auto"));
  EXPECT_FALSE(ItemsExpression::parse("{batch}", kBatch)->value(setting));
}

}  // namespace
}  // namespace halfwatt

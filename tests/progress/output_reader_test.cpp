#include "progress/output_reader.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace halfwatt {
namespace {

OutputReader reader(const std::string& expression = "step (?P<step>\\d+)") {
  Preset made = *preset("auto");
  made.steps.clear();
  made.steps.push_back(*Expression::parse("--progress-regex", expression, "step"));
  return OutputReader(std::move(made));
}

TEST(OutputReader, knows_a_step_before_its_line_ends) {
  OutputReader output = reader();
  output.take("step 5 \nstep 6", Seconds(1));
  EXPECT_EQ(output.reading().steps, 0);
  output.take(" of", Seconds(2));
  EXPECT_EQ(output.reading().steps, 1);
  EXPECT_EQ(output.reading().at, Seconds(2));
}

TEST(OutputReader, reads_numbers_with_separators) {
  OutputReader output = reader("step (?P<step>[\\d,_]+)");
  output.take("step 9,990\nstep 10_000\n", Seconds(1));
  EXPECT_EQ(output.reading().steps, 10);
}

TEST(OutputReader, counts_items_from_the_first_on) {
  OutputReader output = reader("step (?P<step>\\d+) seen (?P<items>\\d+)");
  output.take("step 5 seen 160\nstep 6 seen 192\n", Seconds(1));
  EXPECT_EQ(output.reading().items, 32);
}

TEST(OutputReader, takes_a_loss_that_is_shown_again_once) {
  OutputReader output = reader();
  for (int i = 0; i < 10; ++i) {
    output.take("step 5 loss=0.5\n", Seconds(1));
  }
  EXPECT_EQ(output.reading().losses.told, 1u);
  for (int step = 6; step < 10; ++step) {
    output.take("step " + std::to_string(step) + " loss=0.5\n", Seconds(1));
  }
  EXPECT_EQ(output.reading().losses.told, 5u);
  EXPECT_EQ(output.reading().losses.changed, 0u);
}

TEST(OutputReader, takes_a_gradient_that_is_not_finite_for_a_sign_only_beside_a_loss_of_zero) {
  for (const char* line : {"{'loss': '0', 'grad_norm': 'nan', 'epoch': 1}\n",
                           "{'loss': 0.0, 'grad_norm': nan}\n", "{'eval_loss': 'nan'}\n"}) {
    OutputReader output = reader();
    output.take(line, Seconds(1));
    EXPECT_EQ(output.reading().losses.dead, 1u) << line;
  }
  OutputReader output = reader();
  output.take("{'loss': '0.31', 'grad_norm': 'inf'}\n", Seconds(1));
  EXPECT_EQ(output.reading().losses.dead, 0u) << "loss scaling skips such a step";
}

TEST(OutputReader, sees_half_a_line_that_a_job_dies_with) {
  OutputReader output = reader();
  output.take("step 5\nstep 7", Seconds(1));
  output.restart(Seconds(2));
  EXPECT_EQ(output.reading().steps, 2);
  output.take("step 1\nstep 2\n", Seconds(3));
  EXPECT_EQ(output.reading().steps, 3);
}

TEST(OutputReader, finds_steps_between_gigabytes_of_anything) {
  OutputReader output = reader();
  Rng rng(2);
  std::string noise(1 << 16, ' ');
  for (char& c : noise) {
    c = static_cast<char>(rng.next());
  }
  const std::string no_newline(1 << 20, 'x');
  for (int step = 1; step <= 20; ++step) {
    output.take(noise, Seconds(step));
    output.take(no_newline, Seconds(step));
    output.take("\nstep " + std::to_string(step) + "\n", Seconds(step));
  }
  EXPECT_EQ(output.reading().steps, 19);
}

TEST(OutputReader, survives_any_bytes) {
  Rng rng(9);
  const std::string_view pieces[] = {
      "step ", "12",  "/",     "100 [",  "00:01<00:02, ", "it/s",
      "]",     "\r",  "\n",    "\x1b[A", "\x1b[32m",      "loss=",
      "nan",   "0.5", "|###|", "45%",    "\xff",          "99999999999999999999"};
  OutputReader output(*preset("auto"));
  double last = 0;
  for (int i = 0; i < 50000; ++i) {
    output.take(pieces[rng.next() % std::size(pieces)], Seconds(i));
    const SourceReading reading = output.reading();
    ASSERT_GE(reading.steps, last);
    last = reading.steps;
  }
}

}  // namespace
}  // namespace halfwatt

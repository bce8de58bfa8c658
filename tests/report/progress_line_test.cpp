#include "report/progress_line.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/clock.h"
#include "report/text_layout.h"

namespace halfwatt {
namespace {

const ProgressStyle kLive{.live = true};
const ProgressStyle kPlain{};

TEST(ProgressLine, draws_a_bar_and_estimates_the_time_left_from_the_speed_so_far) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  clock.sleep_until(Seconds(60));
  line.update({.done = 6, .total = 24, .text = "300 W, window 2"});
  EXPECT_EQ(out.str(), "\r\x1b[K[######..................] 6/24, 3:00 left  300 W, window 2");
}

TEST(ProgressLine, prefers_the_time_left_that_its_caller_knows) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  line.update({.done = 1, .total = 2, .left = Seconds(3723)});
  EXPECT_NE(out.str().find("1:02:03 left"), std::string::npos) << out.str();
}

TEST(ProgressLine, shows_no_bar_where_the_total_is_unknown) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  clock.sleep_until(Seconds(5));
  line.update({.done = 3, .text = "warming up"});
  EXPECT_EQ(out.str(), "\r\x1b[K3, 5 s so far  warming up");
}

TEST(ProgressLine, draws_no_more_often_than_its_interval_but_always_the_end) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  line.update({.done = 1, .total = 10});
  const std::string first = out.str();
  clock.sleep_until(Seconds(0.05));
  line.update({.done = 2, .total = 10});
  EXPECT_EQ(out.str(), first);
  line.update({.done = 10, .total = 10});
  EXPECT_NE(out.str().find("10/10"), std::string::npos);
}

TEST(ProgressLine, never_wraps_on_a_narrow_terminal) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, {.live = true, .width = 20});
  line.update({.done = 1, .total = 10, .text = std::string(100, 'x')});
  EXPECT_EQ(display_width(out.str().substr(4)), 16);  // nor does an echoed ^C
}

TEST(ProgressLine, shortens_its_bar_before_it_cuts_its_words_and_keeps_it_short) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, {.live = true, .width = 57});
  line.update({.done = 6, .total = 24, .text = "loss 1.25", .left = Seconds(180)});
  EXPECT_EQ(out.str(), "\r\x1b[K[######..................] 6/24, 3:00 left  loss 1.25");
  for (const std::string text : {"loss 1.2500", "loss 1.25"}) {
    out.str("");
    clock.sleep_until(clock.now() + Seconds(1));
    line.update({.done = 6, .total = 24, .text = text, .left = Seconds(180)});
    EXPECT_EQ(out.str(), "\r\x1b[K[##......] 6/24, 3:00 left  " + text);
  }
}

TEST(ProgressLine, leaves_out_whole_words_from_the_end_where_they_do_not_fit) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, {.live = true, .width = 44});
  line.update(
      {.done = 6, .total = 24, .text = "live  loss 1.25  lr 3e-03", .left = Seconds(180)});
  EXPECT_EQ(out.str(), "\r\x1b[K[##......] 6/24, 3:00 left  live");
}

TEST(ProgressLine, follows_the_width_of_the_window) {
  VirtualClock clock;
  std::ostringstream out;
  int columns = 80;
  ProgressLine line(clock, out, {.live = true, .width_now = [&] { return columns; }});
  for (const int width : {40, 20, 60}) {
    columns = width;
    out.str("");
    clock.sleep_until(clock.now() + Seconds(1));
    line.update({.done = 1, .total = 10, .text = std::string(100, 'x')});
    EXPECT_LE(display_width(out.str().substr(4)), width - 3);
    EXPECT_GE(display_width(out.str().substr(4)), width - 4) << "as wide as there is room";
  }
}

TEST(ProgressLine, counts_in_full) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  line.update({.done = 123456, .total = 1470000, .left = Seconds(1)});
  EXPECT_NE(out.str().find(" 123456/1470000, "), std::string::npos) << out.str();
  clock.sleep_until(Seconds(1));
  line.update({.done = 0.5, .total = 2.25, .left = Seconds(1)});
  EXPECT_NE(out.str().find(" 0.5/2.25, "), std::string::npos) << out.str();
}

TEST(ProgressLine, leaves_a_clean_line_behind) {
  VirtualClock clock;
  std::ostringstream out;
  {
    ProgressLine line(clock, out, kLive);
    line.update({.done = 1, .total = 10});
  }
  EXPECT_TRUE(out.str().ends_with("\r\x1b[K")) << out.str();
}

TEST(ProgressLine, writes_nothing_at_all_when_never_updated) {
  VirtualClock clock;
  std::ostringstream out;
  { ProgressLine line(clock, out, kLive); }
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressLine, lets_a_line_pass_above_it) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, kLive);
  line.update({.done = 1, .total = 2, .left = Seconds(1)});
  out.str("");
  line.say("clamped to 480 W");
  EXPECT_EQ(out.str(), "\r\x1b[Kclamped to 480 W\n[############............] 1/2, 1 s left");
}

TEST(ProgressLine, writes_sparse_plain_lines_where_there_is_no_terminal) {
  VirtualClock clock;
  std::ostringstream out;
  {
    ProgressLine line(clock, out, kPlain);
    for (int second = 0; second <= 70; ++second) {
      clock.sleep_until(Seconds(second));
      line.update({.done = 1.0 * second, .total = 70, .text = "300 W"});
    }
    line.say("done");
  }
  EXPECT_EQ(out.str(), "30/70, 40 s left  300 W\n60/70, 10 s left  300 W\ndone\n");
}

TEST(ProgressLine, passes_no_control_character_on) {
  VirtualClock clock;
  std::ostringstream out;
  ProgressLine line(clock, out, {.live = false, .interval = Seconds(0)});
  line.update({.done = 1, .total = 2, .text = "\x1b[2J"});
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

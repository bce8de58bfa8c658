#include "progress/bars.h"

#include <gtest/gtest.h>

#include <string>

namespace halfwatt {
namespace {

/// Bars that are drawn one after the other, one number a second.
struct Screen {
  Bars bars;
  double time = 0;
  void draw(
      std::string_view label, const char* total, double from, double to, bool aside = false) {
    for (double step = from; step <= to; ++step) {
      bars.see({label, total, step, aside}, Seconds(time));
      time += 1;
    }
  }
};

TEST(Bars, count_the_inner_of_two) {
  Screen screen;
  for (int epoch = 0; epoch < 3; ++epoch) {
    screen.draw("epochs", "3", epoch, epoch);
    screen.draw("train", "10", 0, 10);
  }
  EXPECT_EQ(screen.bars.steps(), 29);
}

TEST(Bars, are_one_through_all_epochs) {
  Screen screen;
  for (const char* label : {"Epoch 1/3", "Epoch 2/3", "Epoch 3/3"}) {
    screen.draw(label, "10", 0, 10);
  }
  EXPECT_EQ(screen.bars.steps(), 29);
}

TEST(Bars, do_not_count_the_validation) {
  Screen screen;
  for (int epoch = 0; epoch < 3; ++epoch) {
    screen.draw("", "30", 0, 30);
    screen.draw("", "15", 0, 15);
  }
  EXPECT_EQ(screen.bars.steps(), 89);
}

TEST(Bars, leave_a_preparation_for_the_training_after_it) {
  Screen screen;
  screen.draw("building index", "500", 0, 500);
  const double before = screen.bars.steps();
  screen.draw("", "100", 0, 100);
  EXPECT_GT(screen.bars.steps(), before + 75) << "after some twenty seconds";
}

TEST(Bars, leave_what_is_known_to_be_aside_at_once) {
  Screen screen;
  screen.draw("Map", "500", 0, 500, true);
  const double before = screen.bars.steps();
  screen.draw("train", "100", 0, 100);
  EXPECT_EQ(screen.bars.steps(), before + 99);
  EXPECT_EQ(screen.bars.changes(), 1u);
}

TEST(Bars, count_what_is_aside_where_there_is_nothing_else) {
  Screen screen;
  screen.draw("Evaluating", "100", 0, 100, true);
  EXPECT_EQ(screen.bars.steps(), 99);
}

TEST(Bars, go_on_after_a_restart) {
  Screen screen;
  screen.draw("train", "100", 0, 50);
  screen.bars.restart();
  screen.draw("train", "100", 50, 60);
  EXPECT_EQ(screen.bars.steps(), 49 + 10);
}

TEST(Bars, stay_few_whatever_is_drawn) {
  Screen screen;
  screen.draw("train", "100", 0, 50);
  for (char c = 'a'; c <= 'z'; ++c) {
    for (char d = 'a'; d <= 'z'; ++d) {
      screen.draw(std::string{c, d}, "9", 0, 3);
    }
    screen.draw("train", "10000", screen.bars.steps() + 1, screen.bars.steps() + 10);
  }
  EXPECT_GE(screen.bars.steps(), 49 + 200);
}

}  // namespace
}  // namespace halfwatt

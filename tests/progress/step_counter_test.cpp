#include "progress/step_counter.h"

#include <gtest/gtest.h>

#include <vector>

namespace halfwatt {
namespace {

StepCounter after(const std::vector<double>& numbers) {
  StepCounter counter;
  double time = 100;
  for (const double number : numbers) {
    counter.see(number, Seconds(time));
    time += 1;
  }
  return counter;
}

TEST(StepCounter, counts_the_difference_of_numbers) {
  EXPECT_EQ(after({10, 20, 45}).steps(), 35);
  EXPECT_EQ(after({10, 20, 45}).at(), Seconds(102));
}

TEST(StepCounter, knows_when_steps_last_changed) {
  EXPECT_EQ(after({10, 20, 20, 20}).at(), Seconds(101));
}

TEST(StepCounter, takes_the_first_number_above_zero_as_its_start) {
  EXPECT_FALSE(after({}).has_spoken());
  EXPECT_TRUE(after({0}).has_spoken());
  // A bar that shows 0 and then the number that it resumes at.
  EXPECT_EQ(after({0, 5000, 5010}).steps(), 10);
}

TEST(StepCounter, adds_up_epochs) {
  EXPECT_EQ(after({5, 10, 15, 20, 0, 5, 10, 15, 20, 0, 5}).steps(), 40);
  EXPECT_EQ(after({5, 10, 15, 20, 5, 10, 15, 20, 5}).steps(), 40);
  // Epochs so short that only their ends are told.
  EXPECT_EQ(after({0, 40, 0, 40, 0, 40}).steps(), 80);
}

TEST(StepCounter, tells_what_numbers_that_went_back_and_do_not_count_are) {
  const StepCounter counter = after({100, 110, 120, 60, 50, 40});
  EXPECT_EQ(counter.steps(), 20);
  ASSERT_TRUE(counter.fall());
  EXPECT_EQ(counter.fall()->from, 120);
  EXPECT_EQ(counter.fall()->to, 40);
  EXPECT_FALSE(after({10, 20, 30}).fall());
  EXPECT_FALSE(after({5, 10, 15, 20, 0, 5}).fall()) << "an epoch";
  EXPECT_FALSE(after({100, 110, 120, 40, 50, 60}).fall()) << "a rollback, counted on from";
}

TEST(StepCounter, ignores_processes_that_lag) {
  EXPECT_EQ(after({1, 2, 3, 2, 3, 4, 3, 2, 4, 5, 4, 5}).steps(), 4);
}

TEST(StepCounter, ignores_processes_that_still_tell_the_end_of_an_epoch) {
  std::vector<double> numbers;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (double step = 1; step <= 100; ++step) {
      numbers.push_back(step);
      numbers.push_back(step);
    }
  }
  // The slower of two processes ends the first epoch after the other has begun the second.
  std::swap(numbers[199], numbers[200]);
  EXPECT_EQ(after(numbers).steps(), 299);
}

TEST(StepCounter, goes_on_from_a_checkpoint_without_counting_the_way_back) {
  EXPECT_EQ(after({5000, 5010, 5020, 4510, 4520, 4530, 4540}).steps(), 20 + 30);
  EXPECT_EQ(after({5000, 5010, 5020, 4510, 5030}).steps(), 30);
}

TEST(StepCounter, takes_any_number_as_a_start_after_a_restart) {
  StepCounter counter = after({10, 20, 30});
  counter.restart();
  EXPECT_EQ(counter.steps(), 20);
  EXPECT_FALSE(counter.see(9000, Seconds(200)));
  EXPECT_TRUE(counter.see(9005, Seconds(201)));
  EXPECT_EQ(counter.steps(), 25);
  counter.restart();
  counter.see(0, Seconds(300));
  counter.see(10, Seconds(301));
  counter.see(20, Seconds(302));
  EXPECT_EQ(counter.steps(), 35);
}

}  // namespace
}  // namespace halfwatt

// All sources together, as a workload meets them.

#include "progress/progress.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cmath>

#include "base/clock.h"
#include "cli/program.h"
#include "progress/job.h"
#include "progress/step_socket.h"

namespace halfwatt {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  Progress open(ProgressOptions options = {}) {
    options.folder = folder_.path("");
    return *Progress::open(options);
  }
  std::string open_error(ProgressOptions options) {
    options.folder = folder_.path("");
    const auto progress = Progress::open(options);
    return progress ? "" : progress.error().message;
  }
  static void tell(Progress& progress, const StepMessage& message) {
    EXPECT_TRUE(tell_step(progress.environment()[1].second, message));
  }
  static void print(Progress& progress, const std::string& text) {
    progress.take_output(text, SteadyClock().now());
  }

  Folder folder_;
};

TEST_F(ProgressTest, is_none_until_a_source_speaks) {
  Progress progress = open();
  EXPECT_FALSE(progress.latest());
  EXPECT_EQ(progress.kind(), ProgressKind::none);
  EXPECT_EQ(progress.numerical_state(), NumericalState::unknown);
}

TEST_F(ProgressTest, gives_a_job_the_ways_to_its_page_and_socket) {
  const Progress progress = open();
  const Environment environment = progress.environment();
  ASSERT_EQ(environment.size(), 2u);
  EXPECT_EQ(environment[0].first, "HALFWATT_PROGRESS");
  EXPECT_EQ(environment[1].first, "HALFWATT_SOCKET");
}

TEST_F(ProgressTest, prefers_the_page_to_the_socket_to_the_output_and_never_goes_back) {
  ProgressOptions options;
  options.step_regex = "step (\\d+)";
  Progress progress = open(options);
  print(progress, "step 100\nstep 107\n");
  EXPECT_EQ(progress.latest()->steps, 7);
  EXPECT_EQ(progress.kind(), ProgressKind::expression);

  tell(progress, {});
  EXPECT_EQ(progress.latest()->steps, 7);
  EXPECT_EQ(progress.kind(), ProgressKind::socket);
  print(progress, "step 120\n");
  tell(progress, {});
  EXPECT_EQ(progress.latest()->steps, 8);

  ASSERT_EQ(write_steps("count", 5, progress.environment()), 0);
  EXPECT_EQ(progress.latest()->steps, 8);
  EXPECT_EQ(progress.kind(), ProgressKind::page);
  EXPECT_EQ(progress.latest()->changes, 2u);
  tell(progress, {});
  ASSERT_EQ(write_steps("count", 5, progress.environment()), 0);
  EXPECT_EQ(progress.latest()->steps, 13);
}

TEST_F(ProgressTest, counts_on_when_the_job_is_started_again) {
  ProgressOptions options;
  options.step_regex = "step (\\d+)";
  Progress progress = open(options);
  print(progress, "step 100\nstep 110\n");
  progress.job_restarts();
  EXPECT_EQ(progress.latest()->steps, 10);
  print(progress, "step 1\nstep 4\n");
  EXPECT_EQ(progress.latest()->steps, 13);
  ASSERT_EQ(write_steps("count", 5, progress.environment()), 0);
  progress.latest();
  progress.job_restarts();
  ASSERT_EQ(write_steps("count", 2, progress.environment()), 0);
  EXPECT_EQ(progress.latest()->steps, 15);
}

TEST_F(ProgressTest, says_dead_of_a_window_with_a_loss_that_is_not_finite) {
  Progress progress = open();
  ASSERT_EQ(write_steps("count", 10, progress.environment()), 0);
  EXPECT_EQ(progress.numerical_state(), NumericalState::live);
  progress.window_begins();
  EXPECT_EQ(progress.numerical_state(), NumericalState::unknown);
  ASSERT_EQ(write_steps("nan", 1, progress.environment()), 0);
  EXPECT_EQ(progress.numerical_state(), NumericalState::dead);
  EXPECT_TRUE(std::isnan(*progress.latest()->loss));
  progress.window_begins();
  EXPECT_EQ(progress.numerical_state(), NumericalState::dead);
  progress.job_restarts();
  EXPECT_EQ(progress.numerical_state(), NumericalState::unknown);
}

TEST_F(ProgressTest, says_stalled_of_a_window_whose_losses_are_all_equal) {
  Progress progress = open();
  ASSERT_EQ(write_steps("same", 10, progress.environment()), 0);
  EXPECT_EQ(progress.numerical_state(), NumericalState::stalled);
  progress.window_begins();
  ASSERT_EQ(write_steps("count", 10, progress.environment()), 0);
  EXPECT_EQ(progress.numerical_state(), NumericalState::live);
}

TEST_F(ProgressTest, says_dead_whoever_saw_it) {
  Progress progress = open();
  ASSERT_EQ(write_steps("count", 10, progress.environment()), 0);
  print(progress, "loss=nan\n");
  EXPECT_EQ(progress.numerical_state(), NumericalState::dead);
}

TEST_F(ProgressTest, takes_the_losses_of_an_expression_of_the_users) {
  ProgressOptions options;
  options.loss_regex = "cost ([-.\\w]+)";
  Progress progress = open(options);
  print(progress, "loss=nan\n");
  EXPECT_EQ(progress.numerical_state(), NumericalState::unknown);
  print(progress, "cost 0.5\n");
  EXPECT_EQ(progress.numerical_state(), NumericalState::live);
  print(progress, "cost nan\n");
  EXPECT_EQ(progress.numerical_state(), NumericalState::dead);
}

TEST_F(ProgressTest, takes_the_loss_in_the_expression_of_a_step) {
  ProgressOptions options;
  options.step_regex = "(?P<step>\\d+) err (?P<loss>\\S+)";
  Progress progress = open(options);
  print(progress, "1 err 0.5\n2 err inf\n");
  EXPECT_EQ(progress.latest()->steps, 1);
  EXPECT_EQ(progress.numerical_state(), NumericalState::dead);
}

TEST_F(ProgressTest, wakes_who_polls_the_socket) {
  Progress progress = open();
  pollfd waits{progress.socket_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waits, 1, 0), 0);
  tell(progress, {});
  EXPECT_EQ(::poll(&waits, 1, 1000), 1);
  progress.latest();
  EXPECT_EQ(::poll(&waits, 1, 0), 0);
}

TEST_F(ProgressTest, names_the_flag_of_what_it_cannot_take) {
  ProgressOptions steps;
  steps.step_regex = "step (\\d+";
  EXPECT_NE(open_error(steps).find("--progress-regex 'step (\\d+': missing )"),
            std::string::npos);
  ProgressOptions losses;
  losses.loss_regex = "loss";
  EXPECT_NE(open_error(losses).find("--loss-regex 'loss': no group is called loss"),
            std::string::npos);
  ProgressOptions preset;
  preset.preset = "keras";
  EXPECT_NE(open_error(preset).find("--progress keras"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

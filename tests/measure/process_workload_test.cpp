// Commands of all sorts as workloads: real processes on the real clock.

#include "measure/process_workload.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "measure/odd_job.h"

namespace halfwatt {
namespace {

std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const ProcessInfo& each : all_processes()) {
    if (each.parent == ::getpid()) {
      all.push_back(each.id);
    }
  }
  return all;
}

/// A workload of one test, with what it told.
class ProcessWorkloadTest : public testing::Test {
 protected:
  void make(std::vector<std::string> words, std::vector<KnobValues> knobs = {}) {
    ProgressOptions progress;
    workload_.reset();
    progress.folder = folder_.path() / std::to_string(++made_);
    std::filesystem::create_directory(progress.folder);
    progress.step_regex = R"((?P<step>\d+)/(?P<total>\d+) \[)";
    progress.loss_regex = R"(loss=(?P<loss>\S+?)\])";
    Result<Progress> opened = Progress::open(progress);
    ASSERT_TRUE(opened) << opened.error().message;
    Result<CommandTemplate> command = CommandTemplate::make(std::move(words), knobs);
    ASSERT_TRUE(command) << command.error().message;
    ProcessOptions options;
    options.command = std::move(*command);
    options.knobs = std::move(knobs);
    options.name = "odd_job";
    options.power_only = power_only_;
    options.patience = patience_;
    options.grace = Seconds(0.1);
    options.tell = [this](const std::string& sentence) { told_ += sentence + "\n"; };
    options.tee = [this](std::string_view bytes) { bytes_ += static_cast<long>(bytes.size()); };
    options.interrupted = [this] { return interrupted_; };
    workload_ =
        std::make_unique<ProcessWorkload>(std::move(options), std::move(*opened), clock_);
    ASSERT_TRUE(workload_->start());
  }

  Error apply_error(const Setting& setting = {}) {
    const Result<void> applied = workload_->apply(setting);
    EXPECT_FALSE(applied);
    return applied ? Error{} : applied.error();
  }

  bool goes_on(double steps) {
    const double begin = workload_->work_done().count;
    return wait_for([&] { return workload_->work_done().count >= begin + steps; });
  }

  void TearDown() override {
    workload_.reset();
    EXPECT_EQ(children(), std::vector<pid_t>{}) << "nothing may be left running";
  }

  static Setting batch(double value) {
    Setting setting;
    setting.set("batch", value);
    return setting;
  }
  static std::vector<KnobValues> batches() { return {{{"batch", "", {}}, {16., 1024.}}}; }

  TestFolder folder_;
  SteadyClock clock_;
  Seconds patience_{20};
  std::string told_;
  std::atomic<long> bytes_{0};
  bool interrupted_ = false;
  bool power_only_ = false;
  int made_ = 0;
  std::unique_ptr<ProcessWorkload> workload_;
};

TEST_F(ProcessWorkloadTest, counts_seconds_of_running_where_only_power_is_asked_for) {
  power_only_ = true;
  make({"sleep", "100"});
  ASSERT_TRUE(workload_->apply({}));
  EXPECT_EQ(workload_->info().unit, kSecondOfRunning);
  EXPECT_TRUE(goes_on(1));
}

TEST_F(ProcessWorkloadTest, counts_the_steps_that_the_command_prints) {
  make(odd_job({"steps", "100000", "2"}));
  ASSERT_TRUE(workload_->apply({}));
  EXPECT_TRUE(goes_on(10));
  EXPECT_EQ(workload_->work_done().starts, 1);
  EXPECT_EQ(workload_->progress_kind(), ProgressKind::expression);
  EXPECT_GT(bytes_, 0);
}

TEST_F(ProcessWorkloadTest, starts_a_command_again_that_ends_and_goes_on_counting) {
  make(odd_job({"steps", "30", "2"}));
  ASSERT_TRUE(workload_->apply({}));
  double last = 0;
  EXPECT_TRUE(wait_for([&] {
    const WorkDone done = workload_->work_done();
    EXPECT_GE(done.count, last);
    last = done.count;
    return done.starts >= 3;
  }));
  EXPECT_GT(last, 50);
}

TEST_F(ProcessWorkloadTest, goes_on_with_the_same_process_where_only_the_limit_changes) {
  make(odd_job({"steps", "100000", "2"}));
  Setting setting;
  for (const double limit : {300., 200.}) {
    setting.set("power_limit", limit);
    ASSERT_TRUE(workload_->apply(setting));
    EXPECT_EQ(workload_->work_done().starts, 1);
  }
}

TEST_F(ProcessWorkloadTest, starts_the_command_again_with_another_value_of_its_knob) {
  make(odd_job({"steps", "100000", "{batch}"}), {{{"batch", "", {}}, {1., 2.}}});
  ASSERT_TRUE(workload_->apply(batch(1)));
  ASSERT_TRUE(workload_->apply(batch(1)));
  EXPECT_EQ(workload_->work_done().starts, 1);
  ASSERT_TRUE(workload_->apply(batch(2)));
  EXPECT_EQ(workload_->work_done().starts, 2);
  EXPECT_EQ(children().size(), 1U);
  EXPECT_TRUE(goes_on(3));
}

TEST_F(ProcessWorkloadTest, says_does_not_fit_of_a_setting_that_runs_out_of_memory) {
  make(odd_job({"no-memory", "{batch}"}), batches());
  ASSERT_TRUE(workload_->apply(batch(1024)));
  EXPECT_EQ(workload_->work_done().stopped, WindowNote::does_not_fit);
  EXPECT_NE(told_.find("batch=1024: does not fit"), std::string::npos) << told_;
  ASSERT_TRUE(workload_->apply(batch(16)));
  EXPECT_FALSE(workload_->work_done().stopped);
  EXPECT_TRUE(goes_on(2));
}

TEST_F(ProcessWorkloadTest, does_not_try_again_what_did_not_fit) {
  make(odd_job({"no-memory", "{batch}"}), batches());
  ASSERT_TRUE(workload_->apply(batch(1024)));
  const int starts = workload_->work_done().starts;
  ASSERT_TRUE(workload_->apply(batch(1024)));
  EXPECT_EQ(workload_->work_done().stopped, WindowNote::does_not_fit);
  EXPECT_EQ(workload_->work_done().starts, starts);
}

TEST_F(ProcessWorkloadTest, gives_up_after_three_failures_with_the_last_words_of_the_command) {
  make(odd_job({"exit", "3"}));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(workload_->apply({}));
    EXPECT_EQ(workload_->work_done().stopped, WindowNote::job_failed);
  }
  const Error error = apply_error();
  EXPECT_EQ(error.kind, ErrorKind::workload);
  EXPECT_EQ(error.message,
            "odd_job: failed 3 times in a row, at last under odd_job: ended with status 3; its "
            "last line: \"odd_job: cannot open data.bin\"");
}

TEST_F(ProcessWorkloadTest, takes_a_command_that_ends_at_once_without_a_step_for_failed) {
  make(odd_job({"exit", "0"}));
  ASSERT_TRUE(workload_->apply({}));
  EXPECT_EQ(workload_->work_done().stopped, WindowNote::job_failed);
  EXPECT_NE(told_.find("ended with status 0 and did no step"), std::string::npos) << told_;
}

TEST_F(ProcessWorkloadTest, says_that_a_command_is_not_there) {
  make({"no-such-command-here"});
  const Error error = apply_error();
  EXPECT_EQ(error.kind, ErrorKind::workload);
  EXPECT_EQ(error.message.find("no-such-command-here: command not found"), 0U);
}

TEST_F(ProcessWorkloadTest, ends_with_an_error_where_no_step_is_ever_seen) {
  patience_ = Seconds(0.3);
  for (const auto& words :
       {std::vector<std::string>{"sleep", "1000"}, odd_job({"close"}),
        odd_job({"ignore-term", folder_.path("pid")}), std::vector<std::string>{"yes", "hello"},
        std::vector<std::string>{"cat", "/dev/urandom"}}) {
    make(words);
    const Error error = apply_error();
    EXPECT_EQ(error.kind, ErrorKind::workload);
    EXPECT_EQ(error.message.find("odd_job: no progress seen in 0.3 s"), 0U) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
    EXPECT_EQ(children(), std::vector<pid_t>{});
  }
}

TEST_F(ProcessWorkloadTest, makes_a_setting_invalid_under_which_there_is_no_step) {
  patience_ = Seconds(1);
  make({"/bin/sh", "-c", "test {batch} = 16 && exec \"$0\" steps 100000 2; exec sleep 1000",
        odd_job({}).front()},
       batches());
  ASSERT_TRUE(workload_->apply(batch(16)));
  ASSERT_TRUE(workload_->apply(batch(1024)));
  EXPECT_EQ(workload_->work_done().stopped, WindowNote::no_progress);
  ASSERT_TRUE(workload_->apply(batch(16)));
  EXPECT_FALSE(workload_->work_done().stopped);
}

TEST_F(ProcessWorkloadTest, reads_heaps_of_garbage_and_still_sees_the_steps_behind_them) {
  make(odd_job({"megabytes", "64"}));
  ASSERT_TRUE(workload_->apply({}));
  EXPECT_GT(bytes_, 64L << 20);
}

TEST_F(ProcessWorkloadTest, knows_a_dead_network_by_its_loss) {
  make(odd_job({"nan"}));
  ASSERT_TRUE(workload_->apply({}));
  ASSERT_TRUE(goes_on(5));
  EXPECT_EQ(workload_->numerical_state(), NumericalState::dead);
}

TEST_F(ProcessWorkloadTest, knows_nothing_of_a_network_without_a_loss) {
  make(odd_job({"steps", "100000", "2"}));
  ASSERT_TRUE(workload_->apply({}));
  ASSERT_TRUE(goes_on(5));
  EXPECT_EQ(workload_->numerical_state(), NumericalState::unknown);
}

TEST_F(ProcessWorkloadTest, stops_waiting_when_the_user_interrupts) {
  make({"sleep", "1000"});
  interrupted_ = true;
  EXPECT_EQ(apply_error().kind, ErrorKind::interrupted);
}

TEST_F(ProcessWorkloadTest, leaves_nothing_running_of_a_command_that_forks_away) {
  patience_ = Seconds(0.5);
  make(odd_job({"fork-away", folder_.path("pid")}));
  EXPECT_EQ(apply_error().kind, ErrorKind::workload);
  const pid_t daemon = wait_for_pid(folder_.path("pid"));
  EXPECT_GT(daemon, 0);
  EXPECT_FALSE(lives(daemon));
}

}  // namespace
}  // namespace halfwatt

// sim:duty on real processes and the real clock.

#include "device/duty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace halfwatt {
namespace {

const DeviceId kId{DeviceId::Kind::simulated, "duty"};

void pass(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time.value()));
}

/// The state letter of a process, as /proc tells it: R, S, T (stopped), ...
char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string id;
  std::string name;
  char state = '?';
  file >> id >> name >> state;
  return state;
}

bool soon(pid_t process, bool stopped) {
  for (int i = 0; i < 2000; ++i) {
    if ((state_of(process) == 'T') == stopped) {
      return true;
    }
    pass(Seconds(0.005));
  }
  return false;
}

/// Never in the state T for a while that is many turns of the card long.
bool stays_running(pid_t process) {
  for (int i = 0; i < 40; ++i) {
    if (state_of(process) == 'T') {
      return false;
    }
    pass(Seconds(0.005));
  }
  return true;
}

/// A card with its limit in a file, and a process group that counts.
class DutyCardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    open();
    child_ = ::fork();
    if (child_ == 0) {
      ::setpgid(0, 0);
      while (true) {
        ::usleep(1000);
      }
    }
    ::setpgid(child_, child_);
  }

  void TearDown() override {
    card_.reset();
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void open() {
    Result<LimitFile> limit = DutyCard::open_limit(folder_ / "limit");
    ASSERT_TRUE(limit) << limit.error().message;
    card_ = std::make_unique<DutyCard>(kId, DutyModel{}, std::move(*limit), clock_);
  }

  void set_limit(double watts) { ASSERT_TRUE(card_->limit_file().set(Watts(watts))); }
  double power() { return card_->read().value()[SignalId::power].value(); }

  std::filesystem::path folder_;
  SteadyClock clock_;
  pid_t child_ = -1;
  std::unique_ptr<DutyCard> card_;
};

TEST(Duty, rises_with_the_limit_up_to_one) {
  const DutyModel model;
  double last = 0;
  for (double watts = 100; watts < 300; watts += 10) {
    EXPECT_GT(duty(model, Watts(watts)), last);
    last = duty(model, Watts(watts));
  }
  EXPECT_EQ(duty(model, Watts(300)), 1);
  EXPECT_EQ(duty(model, Watts(350)), 1);
  EXPECT_NEAR(duty(model, Watts(120)), 0.5, 1e-12);
}

TEST_F(DutyCardTest, keeps_its_limit_when_it_is_opened_again) {
  set_limit(200);
  card_.reset();
  open();
  EXPECT_EQ(card_->read().value()[SignalId::requested_limit], 200);
}

TEST_F(DutyCardTest, stops_nothing_where_the_limit_does_not_bind) {
  card_->set_group(child_);
  EXPECT_TRUE(stays_running(child_));
  const DutyShare share = card_->share();
  EXPECT_EQ(share.allowed, share.elapsed);
}

TEST_F(DutyCardTest, lets_the_group_run_for_the_share_of_its_limit) {
  card_->set_group(child_);
  for (const double watts : {100., 120., 200., 280.}) {
    set_limit(watts);
    card_->set_group(child_);
    pass(Seconds(0.6));
    const DutyShare share = card_->share();
    EXPECT_NEAR(share.allowed / share.elapsed, duty(DutyModel{}, Watts(watts)), 0.05) << watts;
  }
}

TEST_F(DutyCardTest, draws_what_the_limit_allows) {
  EXPECT_NEAR(power(), 60, 1);
  card_->set_group(child_);
  pass(Seconds(2));
  EXPECT_NEAR(power(), 300, 5);
  set_limit(150);
  pass(Seconds(2));
  double sum = 0;
  for (int i = 0; i < 50; ++i) {
    pass(Seconds(0.02));
    sum += power();
  }
  EXPECT_NEAR(sum / 50, 150, 10);
  EXPECT_GT(card_->read().value()[SignalId::power_capped_time], 1);
}

TEST_F(DutyCardTest, counts_the_joules_of_its_draw_in_ticks) {
  card_->set_group(child_);
  pass(Seconds(2));
  const Joules begin = card_->energy().value();
  pass(Seconds(1));
  const Joules end = card_->energy().value();
  EXPECT_NEAR((end - begin).value(), 300, 45);  // of 100 ms ticks: one more or less
}

TEST_F(DutyCardTest, leaves_the_group_running_when_it_lets_go_of_it) {
  set_limit(100);
  card_->set_group(child_);
  ASSERT_TRUE(soon(child_, true));
  card_->set_group(std::nullopt);
  EXPECT_TRUE(soon(child_, false));
  EXPECT_TRUE(stays_running(child_));
}

TEST_F(DutyCardTest, leaves_the_group_running_when_it_ends) {
  set_limit(100);
  card_->set_group(child_);
  ASSERT_TRUE(soon(child_, true));
  card_.reset();
  EXPECT_TRUE(stays_running(child_));
}

TEST_F(DutyCardTest, follows_a_limit_that_another_process_sets) {
  card_->set_group(child_);
  ASSERT_TRUE(stays_running(child_));
  const pid_t other = ::fork();
  if (other == 0) {
    Result<LimitFile> file = LimitFile::open(folder_ / "limit");
    std::_Exit(file && file->set(Watts(100)) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(soon(child_, true));
}

TEST_F(DutyCardTest, survives_the_death_of_its_group) {
  set_limit(200);
  card_->set_group(child_);
  ::kill(-child_, SIGKILL);
  pass(Seconds(0.1));
  EXPECT_TRUE(card_->read());
}

}  // namespace
}  // namespace halfwatt

// sim:duty on real processes and the real clock.

#include "device/duty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Never in the state T for a while that is several turns of the card long.
bool stays_running(pid_t process) {
  for (int i = 0; i < 60; ++i) {
    if (state_of(process) == 'T') {
      return false;
    }
    pass(Seconds(0.005));
  }
  return true;
}

[[noreturn]] void compute() {
  volatile double x = 1;
  while (true) {
    x = x * 1.0000001 + 1e-9;
  }
}

[[noreturn]] void sleep_mostly() {
  while (true) {
    ::usleep(1000);
  }
}

/// A child that does `what`, in `group`, or in one of its own if that is 0.
pid_t child_that(void (*what)(), pid_t group = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, group);
    what();
    std::_Exit(0);
  }
  ::setpgid(child, group);
  return child;
}

/// A card with its limit in a file, and a process group that computes.
class DutyCardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    open();
    child_ = child_that(compute);
  }

  void TearDown() override {
    card_.reset();
    ::kill(-child_, SIGKILL);
    while (::waitpid(-child_, nullptr, 0) > 0) {
    }
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

  /// Ends another group than that of the fixture, which the card may have.
  void end(pid_t child) {
    card_->set_group(std::nullopt);
    ::kill(-child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  /// Until the next turn of the card is over: then its counter of energy moves.
  void wait_for_turn() {
    const auto before = card_->energy();
    for (int i = 0; i < 5000 && card_->energy() == before; ++i) {
      pass(Seconds(0.001));
    }
  }

  /// Whether it soon draws between `low` and `high` watts.
  bool soon_draws(double low, double high) {
    for (int i = 0; i < 2000; ++i) {
      if (power() >= low && power() <= high) {
        return true;
      }
      pass(Seconds(0.005));
    }
    return false;
  }

  std::filesystem::path folder_;
  SteadyClock clock_;
  pid_t child_ = -1;
  std::unique_ptr<DutyCard> card_;
};

TEST(Duty, rises_with_the_limit_up_to_one) {
  const DutyModel model;
  double last = 0;
  for (double watts = 100; watts < 200; watts += 10) {
    EXPECT_GT(duty(model, Watts(watts)), last);
    last = duty(model, Watts(watts));
  }
  EXPECT_EQ(duty(model, Watts(200)), 1);
  EXPECT_EQ(duty(model, Watts(350)), 1);
  EXPECT_NEAR(duty(model, Watts(140)), 0.75, 1e-12);
  EXPECT_EQ(duty(model, Watts(40)), 0);
}

TEST(Duty, is_the_share_at_which_the_draw_is_the_limit) {
  const DutyModel model;
  EXPECT_EQ(draw(model, 0), model.idle);
  EXPECT_EQ(draw(model, 1), model.demand);
  for (double watts = 70; watts < 200; watts += 10) {
    EXPECT_NEAR(draw(model, duty(model, Watts(watts))).value(), watts, 1e-9);
  }
}

TEST(Duty, makes_a_step_cheapest_at_the_bend) {
  const DutyModel model;
  const auto joules = [&](Watts limit) { return limit.value() / duty(model, limit); };
  for (const double away : {10., 20., 40.}) {
    EXPECT_GT(joules(model.bend - Watts(away)), 1.015 * joules(model.bend));
    EXPECT_GT(joules(model.bend + Watts(away)), 1.015 * joules(model.bend));
  }
}

TEST_F(DutyCardTest, keeps_its_limit_when_it_is_opened_again) {
  set_limit(200);
  card_.reset();
  open();
  EXPECT_EQ(card_->read().value()[SignalId::requested_limit], 200);
}

TEST_F(DutyCardTest, never_stops_a_group_that_needs_less_than_the_limit_allows) {
  const pid_t sleeper = child_that(sleep_mostly);
  set_limit(100);
  card_->set_group(sleeper);
  EXPECT_TRUE(stays_running(sleeper));
  const DutyShare share = card_->share();
  EXPECT_EQ(share.allowed, share.elapsed);
  end(sleeper);
}

// bench/duty shows it by work truly done.
TEST_F(DutyCardTest, gives_the_group_the_processor_time_of_its_limit) {
  for (const double watts : {100., 140., 350.}) {
    set_limit(watts);
    card_->set_group(child_);
    pass(Seconds(1));
    wait_for_turn();
    const DutyShare share = card_->share();
    if (card_->read().value()[SignalId::throttled_time] > 0) {
      GTEST_SKIP() << "others leave too little of the processors";
    }
    const double full = share.run / (share.elapsed * DutyModel{}.processors);
    EXPECT_NEAR(full, duty(DutyModel{}, Watts(watts)), 0.12) << watts;
    EXPECT_LT(share.allowed, share.elapsed) << watts;
  }
}

TEST_F(DutyCardTest, draws_what_the_limit_allows) {
  EXPECT_NEAR(power(), 60, 1);
  card_->set_group(child_);
  EXPECT_TRUE(soon_draws(190, 210));
  set_limit(120);
  ASSERT_TRUE(soon_draws(110, 130));
  double sum = 0;
  for (int i = 0; i < 75; ++i) {
    pass(Seconds(0.02));
    sum += power();
  }
  EXPECT_NEAR(sum / 75, 120, 15);
  EXPECT_GT(card_->read().value()[SignalId::power_capped_time], 0.5);
}

TEST_F(DutyCardTest, draws_little_for_a_group_that_sleeps) {
  const pid_t sleeper = child_that(sleep_mostly);
  card_->set_group(sleeper);
  pass(Seconds(1));
  EXPECT_LT(power(), 100);
  end(sleeper);
}

TEST_F(DutyCardTest, draws_less_when_the_group_begins_to_sleep) {
  ::signal(SIGUSR1, [](int) { sleep_mostly(); });
  const pid_t job = child_that(compute);
  ::signal(SIGUSR1, SIG_DFL);
  card_->set_group(job);
  EXPECT_TRUE(soon_draws(180, 220));
  ::kill(job, SIGUSR1);
  EXPECT_TRUE(soon_draws(60, 100));
  end(job);
}

TEST_F(DutyCardTest, counts_the_joules_of_its_draw_by_the_turn) {
  card_->set_group(child_);
  ASSERT_TRUE(soon_draws(180, 220));
  const double starved = *card_->read().value()[SignalId::throttled_time];
  const Joules begin = card_->energy().value();
  pass(Seconds(1));
  const Joules end = card_->energy().value();
  if (*card_->read().value()[SignalId::throttled_time] > starved) {
    GTEST_SKIP() << "others leave too little of the processors";
  }
  EXPECT_NEAR((end - begin).value(), 200, 45);
}

TEST_F(DutyCardTest, stops_members_that_join_later) {
  set_limit(100);
  card_->set_group(child_);
  ASSERT_TRUE(soon(child_, true));
  const pid_t late = child_that(compute, child_);
  EXPECT_TRUE(soon(late, true));
  card_->set_group(std::nullopt);
  EXPECT_TRUE(stays_running(late));
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
  ASSERT_TRUE(soon_draws(180, 220));
  const pid_t other = ::fork();
  if (other == 0) {
    Result<LimitFile> file = LimitFile::open(folder_ / "limit");
    std::_Exit(file && file->set(Watts(100)) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(soon_draws(80, 115));
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

// The processor time of real process groups.

#include "device/group_time.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace halfwatt {
namespace {

/// A child of a group that computes on `threads` threads, or waits for signals on none.
class Child {
 public:
  explicit Child(int threads, pid_t group = 0) : id_(::fork()) {
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setpgid(0, group);
      for (int i = 0; i < threads; ++i) {
        std::thread([] {
          volatile double x = 1;
          while (true) {
            x = x * 1.0000001 + 1e-9;
          }
        }).detach();
      }
      while (true) {
        ::pause();
      }
    }
    ::setpgid(id_, group);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  pid_t id() const { return id_; }

 private:
  pid_t id_;
};

/// Whether `time` soon tells of `wanted`; looks for members meanwhile.
bool soon_ran(GroupTime& time, Seconds wanted) {
  for (int i = 0; i < 4000; ++i) {
    time.look();
    if (time.run() > wanted) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(GroupTime, begins_at_zero_and_grows_as_the_group_computes) {
  const Child child(1);
  GroupTime time(child.id());
  EXPECT_LT(time.run(), Seconds(0.1));
  EXPECT_TRUE(soon_ran(time, Seconds(0.2)));
}

TEST(GroupTime, counts_every_thread) {
  const Child child(3);
  GroupTime time(child.id());
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(soon_ran(time, Seconds(0.3)));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  // Three that compute do not fit on fewer processors: then some of them wait.
  const double known = time.run().value() + time.waited().value();
  EXPECT_GT(known, 1.2 * std::min(took.count(), 0.3));
}

TEST(GroupTime, stays_at_zero_for_one_that_waits) {
  const Child child(0);
  GroupTime time(child.id());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  time.look();
  EXPECT_LT(time.run(), Seconds(0.05));
}

TEST(GroupTime, finds_members_that_join_later) {
  const Child first(0);
  GroupTime time(first.id());
  const Child second(1, first.id());
  EXPECT_TRUE(soon_ran(time, Seconds(0.2)));
}

TEST(GroupTime, leaves_other_groups_out) {
  const Child child(0);
  const Child other(1);
  GroupTime time(child.id());
  GroupTime of_other(other.id());
  ASSERT_TRUE(soon_ran(of_other, Seconds(0.2)));
  time.look();
  EXPECT_LT(time.run(), Seconds(0.05));
}

TEST(GroupTime, keeps_what_a_member_used_that_ended) {
  const Child first(0);
  GroupTime time(first.id());
  {
    const Child second(1, first.id());
    ASSERT_TRUE(soon_ran(time, Seconds(0.1)));
  }
  const Seconds before = time.run();
  time.look();
  EXPECT_EQ(time.run(), before);
}

}  // namespace
}  // namespace halfwatt

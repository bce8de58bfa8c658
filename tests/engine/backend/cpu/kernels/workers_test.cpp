#include "engine/backend/cpu/kernels/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace halfwatt::cpu {
namespace {

TEST(Workers, do_everything_once) {
  for (const int threads : {1, 2, 3, 5}) {
    Workers workers(threads);
    for (const Index count : {0, 1, 2, 7, 64, 1000}) {
      for (const Index grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
        workers.parallel_for(count, grain, [&](Index begin, Index end, int thread) {
          EXPECT_LT(thread, threads);
          EXPECT_EQ(begin % grain, 0);
          for (Index i = begin; i < end; ++i) {
            ++done[static_cast<std::size_t>(i)];
          }
        });
        for (const std::atomic<int>& times : done) {
          ASSERT_EQ(times, 1);
        }
      }
    }
  }
}

TEST(Workers, give_a_thread_the_same_range_every_time) {
  Workers workers(3);
  std::vector<int> first(100);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> who(100);
    workers.parallel_for(100, 4, [&](Index begin, Index end, int thread) {
      std::fill(who.begin() + begin, who.begin() + end, thread);
    });
    if (round == 0) {
      first = who;
    }
    ASSERT_EQ(who, first);
  }
}

TEST(Workers, do_everything_once_in_turns_too) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    for (const Index count : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      workers.parallel_in_turns(count, [&](Index begin, Index end, int thread) {
        EXPECT_LT(thread, threads);
        for (Index i = begin; i < end; ++i) {
          ++done[static_cast<std::size_t>(i)];
        }
      });
      for (const std::atomic<int>& times : done) {
        ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(Workers, in_turns_leave_nobody_waiting_for_a_slow_thread) {
  Workers workers(2);
  std::vector<int> turns(2);
  workers.parallel_in_turns(12, [&](Index begin, Index end, int thread) {
    turns[static_cast<std::size_t>(thread)] += static_cast<int>(end - begin);
    if (thread == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_GT(turns[0], turns[1]);
}

TEST(Workers, throw_what_the_first_thread_threw_and_work_on) {
  Workers workers(4);
  for (int round = 0; round < 50; ++round) {
    std::string caught;
    try {
      workers.parallel_for(4, 1, [](Index, Index, int thread) {
        if (thread >= 2) {
          throw std::runtime_error("thread " + std::to_string(thread));
        }
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "thread 2");
  }
  std::atomic<Index> sum = 0;
  workers.parallel_for(10, 1, [&](Index begin, Index end, int) { sum += end - begin; });
  EXPECT_EQ(sum, 10);
}

}  // namespace
}  // namespace halfwatt::cpu

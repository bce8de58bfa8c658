#include "engine/backend/cpu/kernels/workers.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/check.h"

namespace halfwatt::cpu {
namespace {

// A step is a chain of loops of some microseconds each: who looks this often, 20 us or so,
// before going to sleep is mostly spared a system call, and wastes little if nothing comes.
constexpr int kLooksBeforeSleep = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

Index l2_bytes() {
  constexpr Index kUnknown = Index{512} << 10;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long told = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? static_cast<Index>(told) : kUnknown;
#else
  return kUnknown;
#endif
}

// Returns once `value` is no longer `old`.
int changed(const std::atomic<int>& value, int old) {
  for (int look = 0; look < kLooksBeforeSleep; ++look) {
    const int now = value.load(std::memory_order_acquire);
    if (now != old) {
      return now;
    }
    pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

struct Workers::Pool {
  // NOLINTNEXTLINE(bugprone-throw-keyword-missing): a list of exceptions, none of them new
  explicit Pool(int threads) : failures(static_cast<std::size_t>(threads)) {}
  ~Pool() {
    over = true;
    announce();
    for (std::thread& one : others) {
      one.join();
    }
  }

  void start() {
    const int threads = static_cast<int>(failures.size());
    others.reserve(failures.size() - 1);
    for (int thread = 1; thread < threads; ++thread) {
      others.emplace_back([this, thread] { serve(thread); });
    }
  }

  void announce() {
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }

  void serve(int thread) {
    for (int seen = 0;;) {
      seen = changed(round, seen);
      if (over) {
        return;
      }
      do_share(thread);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        unfinished.notify_one();
      }
    }
  }

  void do_share(int thread) {
    try {
      Index begin =
          in_turns ? next.fetch_add(share, std::memory_order_relaxed) : thread * share;
      while (begin < count) {
        task.call(task.context, begin, std::min(count, begin + share), thread);
        begin = in_turns ? next.fetch_add(share, std::memory_order_relaxed) : count;
      }
    } catch (...) {
      failures[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  }

  void rethrow_first() {
    std::exception_ptr first;
    for (std::exception_ptr& failure : failures) {
      if (failure != nullptr && first == nullptr) {
        first = failure;
      }
      failure = nullptr;
    }
    if (first != nullptr) {
      std::rethrow_exception(first);
    }
  }

  // Written by the caller between rounds, read by the others within one.
  Task task{};
  Index count = 0;
  Index share = 0;
  bool in_turns = false;
  bool over = false;

  std::vector<std::exception_ptr> failures;
  std::atomic<Index> next = 0;  // of a loop in turns
  std::atomic<int> round = 0;
  std::atomic<int> unfinished = 0;
  std::vector<std::thread> others;
};

Workers::Workers(int threads) : threads_(threads), cache_(l2_bytes()) {
  HALFWATT_CHECK(threads >= 1, "at least one thread does the work");
  pool_ = std::make_unique<Pool>(threads);
  pool_->start();
}

Workers::~Workers() = default;

void Workers::run(Index count, Index grain, Task task) {
  HALFWATT_CHECK(grain >= 1, "a range is at least one long");
  const Index grains = (count + grain - 1) / grain;
  if (threads_ == 1 || grains <= 1) {
    if (count > 0) {
      task.call(task.context, 0, count, 0);
    }
    return;
  }
  run_all(count, (grains + threads_ - 1) / threads_ * grain, false, task);
}

void Workers::run_in_turns(Index count, Task task) {
  // So many that the last one to finish is late by little, so few that taking them costs
  // nothing.
  constexpr Index kTurns = 6;
  if (threads_ == 1) {
    if (count > 0) {
      task.call(task.context, 0, count, 0);
    }
    return;
  }
  run_all(count, (count + kTurns * threads_ - 1) / (kTurns * threads_), true, task);
}

void Workers::run_all(Index count, Index share, bool in_turns, Task task) {
  pool_->task = task;
  pool_->count = count;
  pool_->share = std::max<Index>(1, share);
  pool_->in_turns = in_turns;
  pool_->next.store(0, std::memory_order_relaxed);
  pool_->unfinished.store(threads_ - 1, std::memory_order_relaxed);
  pool_->announce();
  pool_->do_share(0);
  for (int left = pool_->unfinished.load(std::memory_order_acquire); left != 0;) {
    left = changed(pool_->unfinished, left);
  }
  pool_->rethrow_first();
}

}  // namespace halfwatt::cpu

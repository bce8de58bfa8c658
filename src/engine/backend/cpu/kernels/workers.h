#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace halfwatt::cpu {

using Index = std::int64_t;

/// A fixed pool of threads for loops over independent work; the caller is one of them.
class Workers {
 public:
  /// `threads` in all, the caller included; at least 1. Throws std::system_error where the
  /// system gives no more threads.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return threads_; }
  /// Bytes of a core's L2 cache; 512 KB where the system does not tell.
  Index cache() const { return cache_; }

  /// Calls `function(begin, end, thread)` for consecutive ranges of [0, count), at most one for
  /// each thread and, but for the last, a multiple of `grain` long; returns when all are done.
  /// Who does what depends on the number of threads alone, never on who is faster, so that the
  /// same loop on as many threads always computes the same bits. What a call throws is thrown
  /// here, the first thread's if there are several. One caller at a time, and not from inside
  /// of `function`.
  template <class Function>
  void parallel_for(Index count, Index grain, Function&& function) {
    run(count, grain, {&function, [](void* context, Index begin, Index end, int thread) {
                         (*static_cast<std::remove_reference_t<Function>*>(context))(begin, end,
                                                                                     thread);
                       }});
  }

  /// The same in several shorter ranges, which threads take as they come: for work whose bits
  /// do not depend on who does what. A thread that has to wait for its core holds nobody up for
  /// longer than one of them.
  template <class Function>
  void parallel_in_turns(Index count, Function&& function) {
    run_in_turns(count, {&function, [](void* context, Index begin, Index end, int thread) {
                           (*static_cast<std::remove_reference_t<Function>*>(context))(
                               begin, end, thread);
                         }});
  }

 private:
  // No std::function: its inline members, instantiated in a file that is compiled for AVX-512,
  // could be the copies that the linker keeps for the whole program.
  struct Task {
    void* context;
    void (*call)(void* context, Index begin, Index end, int thread);
  };
  struct Pool;

  void run(Index count, Index grain, Task task);
  void run_in_turns(Index count, Task task);
  void run_all(Index count, Index share, bool in_turns, Task task);

  int threads_;
  Index cache_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace halfwatt::cpu

#pragma once

#include <ctime>

namespace halfwatt {

/// What this thread has had of its processor.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// How often a second of processor time `task(0)`, `task(1)`, ... can be done, of at least
/// `seconds` and of a multiple of `round` times.
template <class Task>
double rate(double seconds, int round, Task task) {
  const double begin = processor_seconds();
  double took = 0;
  int count = 0;
  while (took < seconds || count % round != 0) {
    task(count++);
    took = processor_seconds() - begin;
  }
  return count / took;
}

}  // namespace halfwatt

// What a progress step costs a job: the same loop with and without the call, in turns, so that
// both meet the same machine. Fails above 0.2 us.

#include <fmt/format.h>
#include <halfwatt_progress.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "progress/progress.h"

namespace halfwatt {
namespace {

constexpr int kPairs = 51;
constexpr int kStepsOfALoop = 200'000;
constexpr double kMostNanoseconds = 200;

/// Some work that the compiler cannot leave out, as a step has it.
std::uint64_t work(std::uint64_t state) {
  asm volatile("" : "+r"(state));
  return state * 6364136223846793005u + 1442695040888963407u;
}

template <class Step>
double nanoseconds_of_a_step(Step step) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t state = 1;
  for (int i = 0; i < kStepsOfALoop; ++i) {
    state = work(state);
    step(static_cast<double>(state));
  }
  const std::chrono::duration<double, std::nano> took =
      std::chrono::steady_clock::now() - begin;
  return took.count() / kStepsOfALoop;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values,
                           values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

template <class Step>
double cost_of(Step step) {
  std::vector<double> differences;
  for (int i = 0; i < kPairs; ++i) {
    const double without = nanoseconds_of_a_step([](double) {});
    differences.push_back(nanoseconds_of_a_step(step) - without);
  }
  return median(differences);
}

int run() {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("halfwatt-bench-{}", ::getpid());
  std::filesystem::create_directory(folder);
  int status = 0;
  {
    ProgressOptions options;
    options.folder = folder;
    Result<Progress> progress = Progress::open(options);
    if (!progress) {
      fmt::print(stderr, "bench_progress: {}\n", progress.error().message);
      return 1;
    }
    const double unset = cost_of([](double) { halfwatt_step(1); });
    halfwatt_writer_of_thread_ = {};  // as a job that was just started
    for (const auto& [name, value] : progress->environment()) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    const double step = cost_of([](double) { halfwatt_step(1); });
    const double items = cost_of([](double) { halfwatt_step_items(1, 32); });
    const double loss = cost_of([](double value) {
      halfwatt_step_items(1, 32);
      halfwatt_loss(value);
    });
    fmt::print("cost of a progress step in C++, median of {} pairs of {} steps:\n", kPairs,
               kStepsOfALoop);
    fmt::print("  outside of halfwatt      {:6.1f} ns\n", unset);
    fmt::print("  step                     {:6.1f} ns\n", step);
    fmt::print("  step with items          {:6.1f} ns\n", items);
    fmt::print("  step with items and loss {:6.1f} ns   (at most {:.0f})\n", loss,
               kMostNanoseconds);
    const auto reading = progress->latest();
    const bool is_counted = reading && reading->steps == 3.0 * kPairs * kStepsOfALoop;
    fmt::print("  steps that the page counted: {}\n", is_counted ? "all" : "NOT ALL");
    status = is_counted && loss <= kMostNanoseconds ? 0 : 1;
  }
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace halfwatt

int main() { return halfwatt::run(); }

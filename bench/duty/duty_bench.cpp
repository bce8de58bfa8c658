// bench_duty [SECONDS]: the rate of real processes under sim:duty against the share of time it
// is to give them, for 1, 2 and 4 processes. Before and after every share the rate without a
// limit is measured; a share is measured several times and the median counts. Ends with 1 if
// the time given, or a rate on a quiet machine, is not monotone or off by over 5 %. Where
// others want the processors the rate is shown and not judged: how much of them a process gets
// while it may run is the scheduler's affair.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>
#include <vector>

#include "device/duty.h"

namespace {

using halfwatt::DutyCard;
using halfwatt::DutyModel;
using halfwatt::Seconds;
using halfwatt::Watts;

constexpr int kRepeats = 3;
constexpr double kMostOff = 0.05;
constexpr double kQuiet = 0.95;  // of the best rate: others hardly use the processors

using Counter = std::atomic<std::uint64_t>;

[[noreturn]] void count_for_ever(Counter& counter) {
  while (true) {
    double x = 1;
    for (int i = 0; i < 2000; ++i) {
      x = x * 1.0000001 + 1e-9;
    }
    counter.fetch_add(x > 0 ? 1 : 2, std::memory_order_relaxed);
  }
}

/// Processes of one group that count in shared memory.
class Crowd {
 public:
  explicit Crowd(int size) {
    void* at = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    counter_ = new (at) Counter(0);
    group_ = ::fork();
    if (group_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();  // as a measured command has
      for (int i = 1; i < size; ++i) {
        if (::fork() == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          break;
        }
      }
      count_for_ever(*counter_);
    }
    while (::getsid(group_) != group_) {
      std::this_thread::yield();
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    ::kill(-group_, SIGKILL);
    ::waitpid(group_, nullptr, 0);
    ::munmap(counter_, sizeof(Counter));
  }
  pid_t group() const { return group_; }
  std::uint64_t count() const { return counter_->load(); }

 private:
  Counter* counter_ = nullptr;
  pid_t group_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double rate(const Crowd& crowd, Seconds time) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t before = crowd.count();
  std::this_thread::sleep_for(std::chrono::duration<double>(time.value()));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(crowd.count() - before) / took.count();
}

/// What a limit did, in several repeats.
struct Outcome {
  std::vector<double> rates;  ///< in shares of the rate without a limit
  std::vector<double> given;  ///< share of time
  std::vector<double> free;   ///< rates without a limit
};

Outcome measure_limit(DutyCard& card, const Crowd& crowd, Watts limit, Seconds time) {
  Outcome outcome;
  for (int i = 0; i < kRepeats; ++i) {
    (void)card.limit_file().set(card.limit_file().range().max);
    const double before = rate(crowd, time);
    (void)card.limit_file().set(limit);
    card.set_group(crowd.group());
    const double limited = rate(crowd, time);
    const auto share = card.share();
    (void)card.limit_file().set(card.limit_file().range().max);
    const double after = rate(crowd, time);
    outcome.rates.push_back(limited / ((before + after) / 2));
    outcome.given.push_back(share.allowed / share.elapsed);
    outcome.free.insert(outcome.free.end(), {before, after});
  }
  return outcome;
}

/// True if all is well. `alone`: the best rate of one process, as far as it is known.
bool measure(DutyCard& card, int size, Seconds time, double& alone) {
  const Crowd crowd(size);
  card.set_group(crowd.group());
  const double processors =
      std::min(size, static_cast<int>(std::thread::hardware_concurrency()));
  bool fine = true;
  double last = 0;
  for (const double watts : {100., 120., 160., 200., 240., 280.}) {
    const Outcome outcome = measure_limit(card, crowd, Watts(watts), time);
    alone = std::max(alone,
                     *std::max_element(outcome.free.begin(), outcome.free.end()) / processors);
    const double wanted = duty(DutyModel{}, Watts(watts));
    const double given = median(outcome.given);
    const double got = median(outcome.rates);
    const bool quiet = median(outcome.free) > kQuiet * alone * processors;
    const bool good = std::abs(given / wanted - 1) <= kMostOff && given > last &&
                      (!quiet || std::abs(got / wanted - 1) <= kMostOff);
    fmt::print("{:9d} {:8g} {:8.3f} {:8.3f} {:8.3f} {:+7.1f} %{}{}\n", size, watts, wanted,
               given, got, (got / wanted - 1) * 100, quiet ? "" : "  busy machine",
               good ? "" : "  <- off");
    std::fflush(stdout);
    fine = fine && good;
    last = given;
  }
  card.set_group(std::nullopt);
  return fine;
}

}  // namespace

int main(int argc, char** argv) {
  const Seconds time(argc > 1 ? std::atof(argv[1]) : 0.3);
  const halfwatt::SteadyClock clock;
  std::string folder =
      (std::filesystem::temp_directory_path() / "halfwatt-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return 2;
  }
  auto limit = DutyCard::open_limit(folder + "/limit");
  if (!limit) {
    fmt::print(stderr, "{}\n", limit.error().message);
    return 2;
  }
  DutyCard card({halfwatt::DeviceId::Kind::simulated, "duty"}, DutyModel{}, std::move(*limit),
                clock);
  fmt::print("processes    limit   wanted    given     rate     off\n");
  bool fine = true;
  double alone = 0;
  for (const int size : {1, 2, 4}) {
    fine = measure(card, size, time, alone) && fine;
  }
  std::filesystem::remove_all(folder);
  return fine ? 0 : 1;
}

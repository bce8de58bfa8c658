// bench_duty [SIZE [RIVALS [REPEATS]]]: the rate of real work under sim:duty against the share
// that it is to have, for a group of SIZE busy processes (1, 2 and 4 one after another if it is
// not said), beside RIVALS other busy processes. The rate at the highest limit is measured
// before and after every other; a share is measured several times and the median counts. Ends
// with 1 if a rate is off by over 5 %, or they do not rise. `of time`: what the processes had
// of the time that they were to have at the highest limit; `starved`: the time in which the
// machine left too little for the card's speed, in which a window would be void.

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
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "device/duty.h"

namespace {

using halfwatt::DutyCard;
using halfwatt::DutyModel;
using halfwatt::Seconds;
using halfwatt::Watts;

constexpr double kMostOff = 0.05;
constexpr Seconds kStretch{0.9};  // some twenty turns
constexpr Seconds kSettle{0.3};
constexpr std::array kLimits = {100., 120., 140., 170., 188., 204.};  // W

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

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Until the counter of energy moves: then a turn is over.
void wait_for_edge(DutyCard& card) {
  const auto before = card.energy();
  while (card.energy() == before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Counts in a second, over whole turns that together last `time` or a little more.
double rate(DutyCard& card, const Crowd& crowd, Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(kSettle.value()));
  wait_for_edge(card);
  const double begun = now();
  const std::uint64_t before = crowd.count();
  do {
    wait_for_edge(card);
  } while (now() - begun < time.value());
  return static_cast<double>(crowd.count() - before) / (now() - begun);
}

/// What a limit did, in several repeats.
struct Outcome {
  std::vector<double> rates;    ///< in shares of the rate at the highest limit
  std::vector<double> of_time;  ///< processor time, in shares of that at full speed
  std::vector<double> starved;  ///< share of the time
  std::vector<double> draws;    ///< W
};

double starved(DutyCard& card) {
  return card.read().value()[halfwatt::SignalId::throttled_time].value();
}

void measure_limit(
    DutyCard& card, const Crowd& crowd, Watts limit, double& top_rate, Outcome& outcome) {
  (void)card.limit_file().set(limit);
  const auto share = card.share();
  const double starved_before = starved(card);
  const double limited = rate(card, crowd, kStretch);
  const auto end = card.share();
  const Seconds elapsed = end.elapsed - share.elapsed;
  outcome.draws.push_back(card.read().value()[halfwatt::SignalId::power].value());
  outcome.starved.push_back((starved(card) - starved_before) / elapsed.value());
  outcome.of_time.push_back((end.run - share.run) / (elapsed * DutyModel{}.processors));
  (void)card.limit_file().set(card.limit_file().range().max);
  const double after = rate(card, crowd, kStretch);
  outcome.rates.push_back(limited / ((top_rate + after) / 2));
  top_rate = after;
}

/// All limits, up and down in turn.
std::array<Outcome, kLimits.size()> measure(DutyCard& card, const Crowd& crowd, int repeats) {
  std::array<Outcome, kLimits.size()> outcomes;
  (void)card.limit_file().set(card.limit_file().range().max);
  double top_rate = rate(card, crowd, kStretch);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t k = 0; k < kLimits.size(); ++k) {
      const std::size_t i = repeat % 2 == 0 ? k : kLimits.size() - 1 - k;
      measure_limit(card, crowd, Watts(kLimits[i]), top_rate, outcomes[i]);
    }
  }
  return outcomes;
}

/// Prints the table; true if all is well.
bool show(const std::array<Outcome, kLimits.size()>& outcomes, int size, int rivals) {
  bool fine = true;
  double last = 0;
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const double wanted = halfwatt::duty(DutyModel{}, Watts(kLimits[i]));
    const double got = median(outcome.rates);
    const auto [low, high] = std::minmax_element(outcome.rates.begin(), outcome.rates.end());
    const bool good = std::abs(got / wanted - 1) <= kMostOff && got > last;
    fmt::print(
        "{:9d} {:6d} {:8g} {:8.3f} {:8.3f} {:+7.1f} % {:8.3f} {:8.3f} {:8.3f} {:8.2f}"
        " {:6.0f}{}\n",
        size, rivals, kLimits[i], wanted, got, (got / wanted - 1) * 100, *low, *high,
        median(outcome.of_time), median(outcome.starved), median(outcome.draws),
        good ? "" : "  <- off");
    fine = fine && good;
    last = got;
  }
  return fine;
}

bool run(DutyCard& card, int size, int rivals, int repeats) {
  const Crowd crowd(size);
  std::vector<std::unique_ptr<Crowd>> others;  // each of a session of its own, as people's are
  for (int i = 0; i < rivals; ++i) {
    others.push_back(std::make_unique<Crowd>(1));
  }
  card.set_group(crowd.group());
  const auto outcomes = measure(card, crowd, repeats);
  card.set_group(std::nullopt);
  double load = 0;
  (void)::getloadavg(&load, 1);
  fmt::print("load average {:.1f} on {} processors\n", load,
             std::thread::hardware_concurrency());
  const bool fine = show(outcomes, size, rivals);
  std::fflush(stdout);
  return fine;
}

}  // namespace

int main(int argc, char** argv) {
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  const int rivals = argc > 2 ? std::atoi(argv[2]) : 0;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
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
  fmt::print(
      "processes rivals    limit   wanted     rate       off      low     high  of time  "
      "starved   draw\n");
  bool fine = true;
  for (const int size : {1, 2, 4}) {
    if (only == 0 || only == size) {
      fine = run(card, size, rivals, repeats) && fine;
    }
  }
  std::filesystem::remove_all(folder);
  return fine ? 0 : 1;
}

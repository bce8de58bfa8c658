// bench_duty [SIZE [RIVALS [REPEATS]]]: the rate of real work under sim:duty against the share
// that it is to have, for a group of SIZE busy processes (1, 2 and 4 one after another if it is
// not said), beside RIVALS other busy processes. The rate at the highest limit is measured
// before and after every other; a share is measured several times and the median counts. As in
// a sweep, stretches are void and measured again in which others left too little of the
// processors for the card's speed. Ends with 1 if a rate is off by over 5 %, or they do not
// rise, or every attempt was void. `of time`: what the processes had of the processor time of
// full speed.

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
#include <utility>
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
constexpr int kAttempts = 3;
constexpr double kMostStarved = 0.02;  // of a stretch, as sweep allows it
constexpr std::array kLimits = {100., 120., 140., 160., 176., 188.};  // W

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
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
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

/// What a limit did for a while.
struct Stretch {
  double rate = 0;     ///< counts in a second
  double of_time = 0;  ///< processor time, in shares of that at full speed
  double draw = 0;     ///< W
  bool valid = false;  ///< others left enough of the processors
};

/// Whole turns that together last kStretch or a little more.
Stretch measure(DutyCard& card, const Crowd& crowd, Watts limit) {
  const auto starved = [&] {
    return card.read().value()[halfwatt::SignalId::throttled_time].value();
  };
  (void)card.limit_file().set(limit);
  std::this_thread::sleep_for(std::chrono::duration<double>(kSettle.value()));
  wait_for_edge(card);
  const double begun = now();
  const double starved_before = starved();
  const std::uint64_t count = crowd.count();
  const Seconds run = card.share().run;
  do {
    wait_for_edge(card);
  } while (now() - begun < kStretch.value());
  const double took = now() - begun;
  return {static_cast<double>(crowd.count() - count) / took,
          (card.share().run - run).value() / took / DutyModel{}.processors,
          card.read().value()[halfwatt::SignalId::power].value(),
          starved() - starved_before <= kMostStarved * took};
}

/// What a limit did, in several repeats.
struct Outcome {
  std::vector<double> rates;  ///< in shares of the rate at the highest limit
  std::vector<double> of_time;
  std::vector<double> draws;
  int voids = 0;
};

void measure_limit(
    DutyCard& card, const Crowd& crowd, Watts limit, Stretch& top, Outcome& outcome) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Stretch limited = measure(card, crowd, limit);
    const Stretch after = measure(card, crowd, card.limit_file().range().max);
    const Stretch before = std::exchange(top, after);
    if (limited.valid && before.valid && after.valid) {
      outcome.rates.push_back(limited.rate / ((before.rate + after.rate) / 2));
      outcome.of_time.push_back(limited.of_time);
      outcome.draws.push_back(limited.draw);
      return;
    }
    ++outcome.voids;
  }
}

/// All limits, up and down in turn.
std::array<Outcome, kLimits.size()> measure(DutyCard& card, const Crowd& crowd, int repeats) {
  std::array<Outcome, kLimits.size()> outcomes;
  Stretch top = measure(card, crowd, card.limit_file().range().max);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t k = 0; k < kLimits.size(); ++k) {
      const std::size_t i = repeat % 2 == 0 ? k : kLimits.size() - 1 - k;
      measure_limit(card, crowd, Watts(kLimits[i]), top, outcomes[i]);
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
    if (outcome.rates.empty()) {
      fmt::print("{:9d} {:6d} {:8g} {:8.3f}  all {} attempts void\n", size, rivals, kLimits[i],
                 wanted, outcome.voids);
      fine = false;
      continue;
    }
    const double got = median(outcome.rates);
    const auto [low, high] = std::minmax_element(outcome.rates.begin(), outcome.rates.end());
    const bool good = std::abs(got / wanted - 1) <= kMostOff && got > last;
    fmt::print(
        "{:9d} {:6d} {:8g} {:8.3f} {:8.3f} {:+7.1f} % {:8.3f} {:8.3f} {:8.3f} {:6.0f}"
        " {:6d}{}\n",
        size, rivals, kLimits[i], wanted, got, (got / wanted - 1) * 100, *low, *high,
        median(outcome.of_time), median(outcome.draws), outcome.voids, good ? "" : "  <- off");
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
      " draw  voids\n");
  bool fine = true;
  for (const int size : {1, 2, 4}) {
    if (only == 0 || only == size) {
      fine = run(card, size, rivals, repeats) && fine;
    }
  }
  std::filesystem::remove_all(folder);
  return fine ? 0 : 1;
}

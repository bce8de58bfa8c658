// What the sampler costs: CPU time of its process with 8 fake cards at 10 Hz, once with calls
// of 10 us that burn the CPU, once with energy calls that take 4 ms as well. It must stay below
// half a percent of one core.
//
// bench_sampler [SECONDS]: 10 each by default; for the real figure give it a quiet machine.
// bench_sampler --real [SECONDS]: the same on the cards of this machine, which it only reads.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "device/nvml_card.h"
#include "device/sampler.h"
#include "fake_nvml/fake_nvml.h"

namespace halfwatt {
namespace {

constexpr std::size_t kCards = 8;
constexpr double kMostPercent = 0.5;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Cost {
  double percent = 0;        ///< of one core
  double samples_per_s = 0;  ///< of one card
  std::size_t energies = 0;  ///< readings of one card's counter
};

using Cards = std::vector<std::unique_ptr<Device>>;

Result<Cards> open_all(const std::string& path) {
  const auto library = NvmlLibrary::open(path);
  if (!library) {
    return library.error();
  }
  const Result<std::vector<NvmlEntry>> entries = (*library)->cards();
  if (!entries) {
    return entries.error();
  }
  Cards cards;
  for (const NvmlEntry& each : *entries) {
    auto card = NvmlCard::open(*library, each.uuid);
    if (!card) {
      return card.error();
    }
    cards.push_back(std::move(*card));
  }
  return Result<Cards>(std::move(cards));
}

Cost measure(Cards cards, Seconds duration) {
  const std::size_t last = cards.size() - 1;
  SteadyClock clock;
  SamplingRules rules;
  rules.kept = static_cast<std::size_t>(duration.value() * 20) + 100;
  Sampler sampler(std::move(cards), rules);
  clock.sleep_until(clock.now() + Seconds(1));  // its first, full round is not what it costs
  const Seconds begun = clock.now();
  const double before = cpu_seconds();
  clock.sleep_until(begun + duration);
  const double used = cpu_seconds() - before;
  const Seconds elapsed = clock.now() - begun;
  Cost cost;
  cost.percent = used / elapsed.value() * 100;
  for (const StampedSample& each : sampler.since(last, begun)) {
    cost.samples_per_s += 1 / elapsed.value();
    cost.energies += each.sample[SignalId::energy] ? 1 : 0;
  }
  return cost;
}

void print_cost(std::size_t cards, const char* name, const Cost& cost) {
  fmt::print("{} cards, {:<26} {:.3f} % of one core, {:.2f} samples/s, {} energies a card\n",
             cards, name, cost.percent, cost.samples_per_s, cost.energies);
}

// Wall and CPU time of one kind of call, medians; some of them apart, as a sampler makes them.
void time_calls(const char* name, Seconds apart, const std::function<void()>& call) {
  constexpr int kCalls = 50;
  SteadyClock clock;
  std::vector<double> wall;
  double cpu = 0;
  for (int i = 0; i < kCalls; ++i) {
    clock.sleep_until(clock.now() + apart);
    const double before = cpu_seconds();
    const Seconds begun = clock.now();
    call();
    wall.push_back((clock.now() - begun).value());
    cpu += cpu_seconds() - before;
  }
  std::sort(wall.begin(), wall.end());
  fmt::print("{:<14} wall median {:8.1f} us, p95 {:8.1f} us; CPU {:8.1f} us a call\n", name,
             wall[kCalls / 2] * 1e6, wall[kCalls * 95 / 100] * 1e6, cpu / kCalls * 1e6);
}

int run_real(Seconds duration) {
  Result<Cards> cards = open_all(NvmlLibrary::usual_path());
  if (!cards || cards->empty()) {
    fmt::print(stderr, "{}\n", cards ? "no card here" : cards.error().message);
    return 1;
  }
  Device& card = *cards->front();
  time_calls("read_quickly", Seconds(0.05), [&card] { (void)card.read_quickly(); });
  time_calls("read", Seconds(0.05), [&card] { (void)card.read(); });
  time_calls("energy", Seconds(0.1), [&card] { (void)card.energy(); });
  const std::size_t count = cards->size();
  print_cost(count, "as they are", measure(std::move(*cards), duration));
  return 0;
}

int run(Seconds duration) {
  fake_nvml::Script quick = FakeNvml::cards(kCards);
  quick.call_us = 10;
  fake_nvml::Script slow = quick;
  // All calls sleep here. Whether a real driver sleeps or spins in the energy call was not
  // measured: if it spins, 8 calls of 4 ms a second are 3.2 % of a core by themselves.
  slow.symbol_us = {{"nvmlDeviceGetTotalEnergyConsumption", 4000}};
  slow.call_is_busy = false;
  bool kept = true;
  for (const auto& [name, script] :
       {std::pair{"10 us a call, busy", quick}, {"and 4 ms an energy call", slow}}) {
    FakeNvml nvml(script);
    nvml.enter_environment();
    Result<Cards> cards = open_all(FakeNvml::library());
    if (!cards) {
      fmt::print(stderr, "{}\n", cards.error().message);
      return 1;
    }
    const Cost cost = measure(std::move(*cards), duration);
    print_cost(kCards, name, cost);
    kept = kept && cost.percent < kMostPercent;
  }
  fmt::print("needed: below {} % of one core: {}\n", kMostPercent, kept ? "kept" : "missed");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) {
  const bool real = argc > 1 && std::strcmp(argv[1], "--real") == 0;
  const int at = real ? 2 : 1;
  const halfwatt::Seconds duration(argc > at ? std::atof(argv[at]) : 10);
  return real ? halfwatt::run_real(duration) : halfwatt::run(duration);
}

// What the sampler costs: CPU time of its process with 8 fake cards at 10 Hz, once with calls
// of 10 us that burn the CPU, once with energy calls that take 4 ms as well. It must stay below
// half a percent of one core.
//
// bench_sampler [SECONDS]: 10 each by default; for the real figure give it a quiet machine.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>

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

Result<Cost> measure(fake_nvml::Script script, Seconds duration) {
  FakeNvml nvml(std::move(script));
  nvml.enter_environment();
  const auto library = NvmlLibrary::open(FakeNvml::library());
  if (!library) {
    return library.error();
  }
  std::vector<std::unique_ptr<Device>> cards;
  for (std::size_t i = 0; i < kCards; ++i) {
    auto card = NvmlCard::open(*library, nvml.card(i).uuid);
    if (!card) {
      return card.error();
    }
    cards.push_back(std::move(*card));
  }
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
  for (const StampedSample& each : sampler.since(kCards - 1, begun)) {
    cost.samples_per_s += 1 / elapsed.value();
    cost.energies += each.sample[SignalId::energy] ? 1 : 0;
  }
  return cost;
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
    const Result<Cost> cost = measure(script, duration);
    if (!cost) {
      fmt::print(stderr, "{}\n", cost.error().message);
      return 1;
    }
    fmt::print("{} cards, {:<26} {:.3f} % of one core, {:.2f} samples/s, {} energies a card\n",
               kCards, name, cost->percent, cost->samples_per_s, cost->energies);
    kept = kept && cost->percent < kMostPercent;
  }
  fmt::print("needed: below {} % of one core: {}\n", kMostPercent, kept ? "kept" : "missed");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  return halfwatt::run(halfwatt::Seconds(seconds));
}

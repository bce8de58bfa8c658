#include "cli/simulation.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "tune/import_csv.h"

namespace halfwatt {

Simulation::Simulation(const DeviceId& device,
                       const RecordedSeries& series,
                       const Disturbance& disturbance,
                       std::uint64_t seed)
    : card(device, series.card, clock),
      workload(series.info, series.curve, series.demand, series.state, card, disturbance, seed),
      limit(card) {}

Disturbance usual_disturbance() {
  Disturbance disturbance;
  disturbance.window_noise = 0.001;
  disturbance.step_jitter = 0.003;
  disturbance.drift = 0.001;
  disturbance.cold_start = 0.05;
  return disturbance;
}

std::vector<Option> simulation_options() {
  return {
      {"--noise", "PERCENT", "simulated: deviation of one window's step time; default 0.1"},
      {"--drift", "PERCENT", "simulated: deviation of a slow drift of 5 minutes; default 0.1"},
      {"--ramp", "PERCENT",
       "simulated: how much slower steps get as the case warms; default 0"},
      {"--seed", "N", "simulated: seed of everything random; default 1"},
  };
}

Result<std::vector<RecordedSeries>> series_of(const DeviceId& device) {
  if (device.kind != DeviceId::Kind::simulated) {
    return Error{
        ErrorKind::device,
        fmt::format("--device {}: nothing runs on it; needed a command behind -- for tune and "
                    "sweep, or sim:rtx3090 or sim:FILE.csv",
                    device.text())};
  }
  if (device.name == "rtx3090") {
    return embedded_study();
  }
  if (!std::string_view(device.name).ends_with(".csv")) {
    return Error{ErrorKind::device,
                 fmt::format("--device {}: no such simulated device; needed sim:rtx3090 or "
                             "sim:FILE.csv",
                             device.text())};
  }
  Result<Imported> imported = import_csv(std::filesystem::path(device.name));
  if (!imported) {
    return imported.error();
  }
  for (const std::string& line : imported->remarks) {
    remark(line);
  }
  std::vector<RecordedSeries> all = playable(imported->series, "file");
  if (all.empty()) {
    return bad_input(
        fmt::format("--device {}: no series to play back; needed one with two power limits or "
                    "more and steps "
                    "of at least 0.1 ms",
                    device.text()));
  }
  return all;
}

Result<RecordedSeries> find_workload(const std::vector<RecordedSeries>& all,
                                     const std::optional<std::string>& name) {
  if (!name && all.size() == 1) {
    return all.front();
  }
  std::string names;
  for (const RecordedSeries& each : all) {
    if (name == each.info.name) {
      return each;
    }
    constexpr std::size_t kEnough = 600;
    if (names.size() < kEnough) {
      names += (names.empty() ? "" : ", ") + each.info.name;
    } else if (!names.ends_with("...")) {
      names += ", ...";
    }
  }
  return bad_input(name
                       ? fmt::format("--workload {}: there is none of that name; needed one of "
                                     "{}",
                                     *name, names)
                       : fmt::format("--workload is missing; needed one of {}", names));
}

Result<std::unique_ptr<Simulation>> open_simulation(const Invocation& invocation,
                                                    const DeviceId& device,
                                                    const RecordedSeries& series) {
  Disturbance disturbance = usual_disturbance();
  const auto read = [&invocation](std::string_view flag, double& share) -> Result<void> {
    const Result<double> percent = invocation.number(flag, share * 100, 0, 50);
    if (!percent) {
      return percent.error();
    }
    share = *percent / 100;
    return {};
  };
  for (const auto& [flag, share] :
       {std::pair<std::string_view, double*>{"--noise", &disturbance.window_noise},
        {"--drift", &disturbance.drift},
        {"--ramp", &disturbance.thermal_ramp}}) {
    if (const Result<void> done = read(flag, *share); !done) {
      return done.error();
    }
  }
  constexpr double kLargestSeed = 9e15;  // whole numbers of a double
  const Result<double> seed = invocation.whole("--seed", 1, 0, kLargestSeed);
  if (!seed) {
    return seed.error();
  }
  return std::make_unique<Simulation>(device, series, disturbance,
                                      static_cast<std::uint64_t>(*seed));
}

}  // namespace halfwatt

#include "device/rapl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "device/cpu_model.h"

namespace halfwatt {
namespace {

constexpr double kMicro = 1e-6;
// The counters move about that often (Intel SDM, volume 3B, 15.10).
constexpr Seconds kTick{0.001};

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Errors name the file and what is wrong with it: 0 is no failed reading.
Result<double> read_number(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file);
  double value = 0;
  if (in >> value && value >= 0) {
    return value;
  }
  const int code = errno;
  if (code == EACCES || code == EPERM) {
    return Error{ErrorKind::device,
                 fmt::format("cpu: no permission to read {}; needed root, or chmod a+r on it "
                             "(kernels since 5.10 let nobody else)",
                             file.string())};
  }
  return Error{ErrorKind::device,
               fmt::format("cpu: {} gives no number{}", file.string(),
                           code != 0 ? fmt::format(": {}", std::strerror(code)) : "")};
}

// "intel-rapl:0" and "intel-rapl:0:1". The zones of intel-rapl-mmio count the same joules
// again.
bool is_zone(const std::string& folder) { return folder.starts_with("intel-rapl:"); }

// Cores and graphics are parts of their package; psys is the whole machine with it.
bool is_summed(const std::string& name) {
  return name.starts_with("package") || name == "dram";
}

}  // namespace

Result<std::unique_ptr<RaplCpu>> RaplCpu::open(const Clock& clock,
                                               const std::filesystem::path& root) {
  std::unique_ptr<RaplCpu> cpu(new RaplCpu(clock));
  cpu->info_.id = {DeviceId::Kind::cpu, ""};
  cpu->info_.name = cpu_model(root);
  const std::filesystem::path folder = root / "sys/class/powercap";
  std::error_code none;
  std::vector<std::filesystem::path> candidates;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (is_zone(entry.path().filename().string())) {
      candidates.push_back(entry.path());
    }
  }
  std::sort(candidates.begin(), candidates.end());
  for (const auto& zone : candidates) {
    const std::string name = first_line(zone / "name");
    if (!is_summed(name)) {
      continue;
    }
    if (const Result<void> done = cpu->add(zone, name); !done) {
      return done.error();
    }
  }
  if (cpu->zones_.empty()) {
    return Error{ErrorKind::device,
                 fmt::format("cpu: no energy counter of a processor under {}; needed the "
                             "kernel's intel_rapl_common (virtual machines have none)",
                             folder.string())};
  }
  cpu->info_.energy_tick = kTick;
  cpu->info_.energy_method = EnergyMethod::counter;
  return cpu;
}

Result<void> RaplCpu::add(const std::filesystem::path& zone, const std::string& name) {
  const Result<double> energy_uj = read_number(zone / "energy_uj");
  if (!energy_uj) {
    return energy_uj.error();
  }
  const Result<double> range_uj = read_number(zone / "max_energy_range_uj");
  zones_.push_back({zone / "energy_uj", range_uj ? *range_uj : 0, *energy_uj, 0});
  names_.push_back(name);
  return {};
}

Result<void> RaplCpu::advance() {
  for (Zone& zone : zones_) {
    const Result<double> now_uj = read_number(zone.file);
    if (!now_uj) {
      return now_uj.error();
    }
    double grown = *now_uj - zone.last_uj;
    if (grown < 0) {
      if (zone.range_uj < zone.last_uj) {
        return Error{
            ErrorKind::device,
            fmt::format("cpu: {} went back, and max_energy_range_uj does not say where "
                        "it wraps",
                        zone.file.string())};
      }
      grown += zone.range_uj;
    }
    zone.last_uj = *now_uj;
    zone.sum_uj += grown;
  }
  return {};
}

std::optional<Joules> RaplCpu::energy() {
  if (!advance()) {
    return std::nullopt;
  }
  double sum_uj = 0;
  for (const Zone& zone : zones_) {
    sum_uj += zone.sum_uj;
  }
  return Joules(sum_uj * kMicro);
}

Result<Sample> RaplCpu::read() {
  if (const Result<void> done = advance(); !done) {
    return done.error();
  }
  const Seconds now = clock_->now();
  const std::optional<Joules> used = energy();
  Sample sample;
  if (used && last_energy_ && now > last_now_) {
    sample[SignalId::average_power] = ((*used - *last_energy_) / (now - last_now_)).value();
  }
  last_energy_ = used;
  last_now_ = now;
  return sample;
}

}  // namespace halfwatt

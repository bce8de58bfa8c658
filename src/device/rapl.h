#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/device.h"

namespace halfwatt {

/// Energy of processors and their memory, as the kernel shows it under /sys/class/powercap
/// (RAPL). Reads only.
class RaplCpu final : public Device {
 public:
  /// Looks for package and dram zones below `root`, which is "/" but in tests. `clock` outlives
  /// it. Errors, one line each: no such zones; no permission to read them.
  static Result<std::unique_ptr<RaplCpu>> open(const Clock& clock,
                                               const std::filesystem::path& root = "/");

  const DeviceInfo& info() const override { return info_; }
  /// `average_power` is that since the last reading; nullopt in the first. Errors: a zone
  /// cannot be read any more.
  Result<Sample> read() override;
  /// Sum of all zones, unwrapped. Counters wrap after minutes to hours: read it at least once a
  /// minute.
  std::optional<Joules> energy() override;

  /// The zones that are summed: "package-0", "dram", ...
  const std::vector<std::string>& zones() const { return names_; }

 private:
  struct Zone {
    std::filesystem::path file;
    double range_uj = 0;  ///< at which its counter wraps; 0: unknown
    double last_uj = 0;
    double sum_uj = 0;
  };

  explicit RaplCpu(const Clock& clock) : clock_(&clock) {}
  Result<void> add(const std::filesystem::path& zone, const std::string& name);
  Result<void> advance();

  const Clock* clock_;
  DeviceInfo info_;
  std::vector<Zone> zones_;
  std::vector<std::string> names_;
  std::optional<Joules> last_energy_;
  Seconds last_now_;
};

}  // namespace halfwatt

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "device/device.h"
#include "device/energy_check.h"
#include "device/nvml_fields.h"
#include "device/nvml_library.h"

namespace halfwatt {

/// A real card, read through NVML. It holds the library, so that the driver stays loaded.
///
/// One NvmlCard belongs to one thread; two threads that read the same card open two, and
/// neither waits for the other.
class NvmlCard final : public Device {
 public:
  /// Opens the card with this UUID. `root` is where /proc is looked for. Errors: it is not
  /// there, lost, or not accessible.
  static Result<std::unique_ptr<NvmlCard>> open(std::shared_ptr<const NvmlLibrary> library,
                                                const std::string& uuid,
                                                const std::filesystem::path& root = "/");

  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override;
  Result<Sample> read_quickly() override;
  /// The energy counter; nullopt where it is missing or was found not to be trusted.
  std::optional<Joules> energy() override;
  void take(const EnergyJudgement& judgement) override;

  /// Which processes are ours; foreign_processes counts the others. Without it ours are this
  /// one and all that it started.
  void set_own_processes(std::function<bool(pid_t)> own) { own_ = std::move(own); }
  /// Its user accepts that others use the card: info() says so from now on.
  void accept_others() { info_.shared = true; }

 private:
  NvmlCard(std::shared_ptr<const NvmlLibrary> library,
           nvml::DeviceHandle handle,
           const std::string& uuid,
           const std::filesystem::path& root);

  bool succeeded(nvml::Return code);
  Result<Sample> read_power(FieldSet set);
  std::optional<double> number(nvml::Number* ask, double unit);
  std::optional<double> clock(nvml::Clock which);
  std::optional<double> violation(nvml::ViolationPolicy policy);
  std::optional<double> ecc(std::uint32_t type);
  std::optional<double> temperature();
  std::optional<double> margin();
  std::optional<double> fan();
  void learn_limits();
  void fill_in_power(Sample& sample);
  void read_memory(Sample& sample);
  void read_activity(Sample& sample);
  Error lost_error() const;

  std::shared_ptr<const NvmlLibrary> library_;  // cards outlive whoever opened it
  const nvml::Calls* calls_;
  nvml::DeviceHandle handle_;
  DeviceInfo info_;
  std::function<bool(pid_t)> own_;
  bool sees_all_processes_;
  bool counter_is_trusted_ = true;
  bool lost_ = false;  ///< a call of the present reading said so
};

}  // namespace halfwatt

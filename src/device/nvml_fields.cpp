#include "device/nvml_fields.h"

#include <array>

namespace halfwatt {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kNano = 1e-9;

struct Row {
  nvml::Field field;
  SignalId signal;
  double unit;  ///< of the field, in the signal's
  bool
      quick;  ///< at hand: 30 us and less on an H200, with others in one call (docs/devices.md)
};

constexpr std::array kRows = {
    Row{nvml::kPowerInstant, SignalId::power, kMilli, true},
    Row{nvml::kPowerAverage, SignalId::average_power, kMilli, true},
    Row{nvml::kRequestedLimit, SignalId::requested_limit, kMilli, true},
    Row{nvml::kEnforcedLimit, SignalId::enforced_limit, kMilli, true},
    Row{nvml::kPowerCappedTime, SignalId::power_capped_time, kNano, true},
    Row{nvml::kThermalTime, SignalId::thermal_time, kNano, false},
    Row{nvml::kBoardLimitTime, SignalId::board_limit_time, kNano, true},
    Row{nvml::kReliabilityTime, SignalId::reliability_time, kNano, true},
    Row{nvml::kSoftwareThermalTime, SignalId::software_thermal_time, kNano, true},
    Row{nvml::kHardwareThermalTime, SignalId::hardware_thermal_time, kNano, false},
    Row{nvml::kPowerBrakeTime, SignalId::power_brake_time, kNano, false},
    Row{nvml::kMemoryTemperature, SignalId::memory_temperature, 1, true},
    Row{nvml::kPcieSentBytes, SignalId::pcie_sent, 1, false},
    Row{nvml::kPcieReceivedBytes, SignalId::pcie_received, 1, false},
    Row{nvml::kRecoveryAction, SignalId::recovery_action, 1, false},
};

}  // namespace

std::optional<double> number(const nvml::FieldValue& field) {
  if (field.status != nvml::kSuccess) {
    return std::nullopt;
  }
  switch (field.value_type) {
    case nvml::kDouble:
      return field.value.d;
    case nvml::kUnsigned32:
      return field.value.u32;
    case nvml::kUnsignedLong:  // 64 bits on Linux
    case nvml::kUnsigned64:
      return static_cast<double>(field.value.u64);
    case nvml::kSigned64:
      return static_cast<double>(field.value.i64);
    case nvml::kSigned32:
      return field.value.i32;
    case nvml::kUnsigned16:
      return field.value.u16;
    default:
      return std::nullopt;
  }
}

nvml::Return read_fields(const nvml::Calls& calls,
                         nvml::DeviceHandle card,
                         FieldSet set,
                         Sample& sample) {
  if (calls.fields == nullptr) {
    return nvml::kFunctionNotFound;
  }
  std::array<nvml::FieldValue, kRows.size()> fields{};
  std::array<const Row*, kRows.size()> asked{};
  std::size_t count = 0;
  for (const Row& row : kRows) {
    if (set == FieldSet::all || row.quick) {
      fields[count].field_id = row.field;
      // A driver that does not know the field may leave it as it is.
      fields[count].status = nvml::kNotSupported;
      asked[count++] = &row;
    }
  }
  const nvml::Return code = calls.fields(card, static_cast<std::int32_t>(count), fields.data());
  if (code != nvml::kSuccess) {
    return code;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (fields[i].status == nvml::kGpuIsLost) {
      return nvml::kGpuIsLost;
    }
    if (const auto value = number(fields[i])) {
      sample[asked[i]->signal] = *value * asked[i]->unit;
    }
  }
  return code;
}

}  // namespace halfwatt

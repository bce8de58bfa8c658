#pragma once

#include <cstddef>
#include <cstdint>

/// NVML's C interface as far as halfwatt reads it, declared by ourselves: the library is loaded
/// at run time, and no header of the vendor is needed to build. Numbers and layouts are those
/// of nvml.h of API 13 on 64-bit Linux. Nothing here sets anything: guard/ declares that.
namespace halfwatt::nvml {

using DeviceHandle = struct OpaqueDevice*;

/// A return code; drivers newer than this file may give others.
using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kInsufficientPower = 8;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kIrqIssue = 11;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kInUse = 19;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kUnknown = 999;

inline constexpr std::size_t kTextSize = 96;  ///< of names and UUIDs, with the final zero

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t device_id;
  std::uint32_t subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

/// How a FieldValue is to be read.
using ValueType = std::uint32_t;
inline constexpr ValueType kDouble = 0;
inline constexpr ValueType kUnsigned32 = 1;
inline constexpr ValueType kUnsignedLong = 2;
inline constexpr ValueType kUnsigned64 = 3;
inline constexpr ValueType kSigned64 = 4;
inline constexpr ValueType kSigned32 = 5;
inline constexpr ValueType kUnsigned16 = 6;

union Value {
  double d;
  std::int32_t i32;
  std::uint32_t u32;
  std::uint64_t u64;
  std::int64_t i64;
  std::uint16_t u16;
};
static_assert(sizeof(Value) == 8);

struct FieldValue {
  std::uint32_t field_id;
  std::uint32_t scope_id;
  std::int64_t timestamp_us;  ///< since 1970
  std::int64_t latency_us;
  std::uint32_t value_type;
  Return status;  ///< each field has its own
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value_type) == 24 &&
              offsetof(FieldValue, value) == 32);

/// Ids of fields. Power in mW, times in ns, limits in mW.
using Field = std::uint32_t;
inline constexpr Field kPowerCappedTime = 74;
inline constexpr Field kThermalTime = 75;
inline constexpr Field kBoardLimitTime = 77;
inline constexpr Field kReliabilityTime = 79;
inline constexpr Field kMemoryTemperature = 82;
inline constexpr Field kPowerAverage = 185;
inline constexpr Field kPowerInstant = 186;
inline constexpr Field kEnforcedLimit = 190;
inline constexpr Field kRequestedLimit = 192;
inline constexpr Field kPcieSentBytes = 197;
inline constexpr Field kPcieReceivedBytes = 198;
inline constexpr Field kRecoveryAction = 230;
inline constexpr Field kSoftwareThermalTime = 269;
inline constexpr Field kHardwareThermalTime = 270;
inline constexpr Field kPowerBrakeTime = 271;

struct Utilization {
  std::uint32_t gpu;     ///< percent of time in which any kernel ran
  std::uint32_t memory;  ///< percent of time in which memory was touched
};
static_assert(sizeof(Utilization) == 8);

struct MemoryInfo {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;  ///< with what the driver keeps for itself
};
static_assert(sizeof(MemoryInfo) == 24);

struct MemoryInfoV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryInfoV2) == 40);

struct Temperature {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(sizeof(Temperature) == 12);

struct MarginTemperature {
  std::uint32_t version;
  std::int32_t celsius;  ///< left until the card slows itself
};
static_assert(sizeof(MarginTemperature) == 8);

struct ViolationTime {
  std::uint64_t reference_us;
  std::uint64_t violation_ns;
};
static_assert(sizeof(ViolationTime) == 16);

/// One process; NVML's records are read from bytes, since drivers disagree on their size.
struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t memory;  ///< all ones: unknown
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

/// The version word of a versioned struct.
template <class Struct>
constexpr std::uint32_t version(std::uint32_t number) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | (number << 24U);
}
static_assert(version<MemoryInfoV2>(2) == 0x02000028);
static_assert(version<Temperature>(1) == 0x0100000c);
static_assert(version<MarginTemperature>(1) == 0x01000008);

using Text = Return(DeviceHandle, char*, std::uint32_t);
using Number = Return(DeviceHandle, std::uint32_t*);
using Processes = Return(DeviceHandle, std::uint32_t*, void*);

using Clock = std::uint32_t;
inline constexpr Clock kGraphicsClock = 0;
inline constexpr Clock kSmClock = 1;
inline constexpr Clock kMemoryClock = 2;

using ViolationPolicy = std::uint32_t;
inline constexpr ViolationPolicy kPowerPolicy = 0;
inline constexpr ViolationPolicy kThermalPolicy = 1;

/// The functions; null where the library lacks one. Arguments named where types do not say it.
struct Calls {
  Return (*init)();
  Return (*init_with_flags)(std::uint32_t flags);
  Return (*shutdown)();
  Return (*driver_version)(char*, std::uint32_t size);
  Return (*library_version)(char*, std::uint32_t size);
  Return (*count)(std::uint32_t*);
  Return (*handle_by_index)(std::uint32_t, DeviceHandle*);
  Return (*handle_by_uuid)(const char*, DeviceHandle*);
  Text* name;
  Text* uuid;
  Return (*pci_info)(DeviceHandle, void*);  ///< at most 68 bytes; the first 36 in every version
  Return (*fields)(DeviceHandle, std::int32_t count, FieldValue*);
  Return (*energy_mj)(DeviceHandle, std::uint64_t*);
  Number* power_mw;
  Number* requested_limit_mw;
  Number* enforced_limit_mw;
  Number* default_limit_mw;
  Return (*limit_range_mw)(DeviceHandle, std::uint32_t* min, std::uint32_t* max);
  Return (*clock_mhz)(DeviceHandle, std::uint32_t clock, std::uint32_t*);
  Return (*temperature_v)(DeviceHandle, Temperature*);
  Return (*temperature)(DeviceHandle, std::uint32_t sensor, std::uint32_t*);
  Return (*margin)(DeviceHandle, MarginTemperature*);
  Return (*fan_percent)(DeviceHandle, std::uint32_t fan, std::uint32_t*);
  Number* first_fan_percent;
  Return (*event_reasons)(DeviceHandle, std::uint64_t*);
  Return (*violation)(DeviceHandle, std::uint32_t policy, ViolationTime*);
  Return (*utilization)(DeviceHandle, Utilization*);
  Return (*memory_v2)(DeviceHandle, MemoryInfoV2*);
  Return (*memory)(DeviceHandle, MemoryInfo*);
  Number* pcie_generation;
  Number* pcie_width;
  Return (*ecc_errors)(DeviceHandle, std::uint32_t type, std::uint32_t span, std::uint64_t*);
  Processes* processes_v3;
  Processes* processes_v2;
  Processes* processes_v1;  ///< records of 16 bytes: without the two instances
  Return (*mig_mode)(DeviceHandle, std::uint32_t* current, std::uint32_t* pending);
  Number* mig_count;
  Return (*mig_handle)(DeviceHandle, std::uint32_t index, DeviceHandle*);
  Number* persistence;
};

}  // namespace halfwatt::nvml

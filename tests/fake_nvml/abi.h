#pragma once

#include <cstddef>
#include <cstdint>

/// The C interface of NVML as far as the fake speaks it: written down from its documentation
/// and on purpose apart from what src/device declares, so that one reading checks the other.
namespace halfwatt::fake_nvml {

/// nvmlReturn_t.
enum class Return : std::uint32_t {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  insufficient_power = 8,
  driver_not_loaded = 9,
  timeout = 10,
  irq_issue = 11,
  library_not_found = 12,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  version_mismatch = 18,
  in_use = 19,
  memory = 20,
  no_data = 21,
  insufficient_resources = 23,
  argument_version_mismatch = 25,
  deprecated = 26,
  not_ready = 27,
  gpu_not_found = 28,
  invalid_state = 29,
  unknown = 999,
};

/// nvmlDevice_t: opaque, never followed.
using Device = void*;

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

union Value {
  double as_double;
  std::uint32_t as_u32;
  std::uint64_t as_u64;
  std::int32_t as_i32;
  std::int64_t as_i64;
};

/// nvmlValueType_t.
enum class ValueType : std::uint32_t { f64 = 0, u32 = 1, ulong = 2, u64 = 3, i64 = 4, i32 = 5 };

struct FieldValue {
  std::uint32_t id;
  std::uint32_t scope;
  std::int64_t timestamp_us;  ///< since 1970
  std::int64_t latency_us;
  ValueType value_type;
  Return result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);
static_assert(offsetof(FieldValue, value_type) == 24);
static_assert(offsetof(FieldValue, value) == 32);

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(Memory) == 24);  // also BAR1

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40);

struct PowerValue {
  std::uint32_t version;
  std::uint8_t scope;
  std::uint32_t limit_mw;
};
static_assert(sizeof(PowerValue) == 12);

struct Utilization {
  std::uint32_t gpu_percent;
  std::uint32_t memory_percent;
};
static_assert(sizeof(Utilization) == 8);

struct Temperature {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(sizeof(Temperature) == 12);

struct Margin {
  std::uint32_t version;
  std::int32_t celsius;
};
static_assert(sizeof(Margin) == 8);

struct FanSpeed {
  std::uint32_t version;
  std::uint32_t fan;
  std::uint32_t rpm;
};
static_assert(sizeof(FanSpeed) == 12);

struct Violation {
  std::uint64_t reference_us;
  std::uint64_t violation_ns;
};
static_assert(sizeof(Violation) == 16);

struct ProcessV1 {
  std::uint32_t pid;
  std::uint64_t bytes;
};
static_assert(sizeof(ProcessV1) == 16);

struct ProcessV2 {
  std::uint32_t pid;
  std::uint64_t bytes;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(ProcessV2) == 24);  // the third version of the call writes the same

/// What drivers 535 before .98 wrote where ProcessV2 was meant.
struct Process535 {
  std::uint32_t pid;
  std::uint64_t bytes;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
  std::uint64_t protected_bytes;
};
static_assert(sizeof(Process535) == 32);

struct ProcessSample {
  std::uint32_t pid;
  std::uint64_t timestamp_us;
  std::uint32_t sm_percent;
  std::uint32_t memory_percent;
  std::uint32_t encoder_percent;
  std::uint32_t decoder_percent;
};
static_assert(sizeof(ProcessSample) == 32);

struct ProcessRow {
  std::uint64_t timestamp_us;
  std::uint32_t pid;
  std::uint32_t sm_percent;
  std::uint32_t memory_percent;
  std::uint32_t encoder_percent;
  std::uint32_t decoder_percent;
  std::uint32_t jpeg_percent;
  std::uint32_t optical_flow_percent;
};
static_assert(sizeof(ProcessRow) == 40);

struct ProcessRows {
  std::uint32_t version;
  std::uint32_t count;
  std::uint64_t last_seen_us;
  ProcessRow* rows;
};
static_assert(sizeof(ProcessRows) == 24);

/// The version word of a versioned struct.
template <class Struct>
constexpr std::uint32_t version_of(std::uint32_t number) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | (number << 24);
}
static_assert(version_of<MemoryV2>(2) == 0x02000028);
static_assert(version_of<PowerValue>(2) == 0x0200000c);
static_assert(version_of<Temperature>(1) == 0x0100000c);
static_assert(version_of<Margin>(1) == 0x01000008);
static_assert(version_of<ProcessRows>(1) == 0x01000018);

}  // namespace halfwatt::fake_nvml

// nvmlDeviceGetFieldValues: one call, many values, each with its own type and answer.
#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "fake_nvml/library.h"
#include "fake_nvml/sensors.h"
#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

/// A value with the type that the driver gives it.
struct Typed {
  ValueType type;
  Value value;
};

Typed u32(std::uint32_t number) {
  Typed typed{ValueType::u32, {}};
  typed.value.as_u32 = number;
  return typed;
}

Typed u64(std::uint64_t number) {
  Typed typed{ValueType::u64, {}};
  typed.value.as_u64 = number;
  return typed;
}

Typed i32(std::int32_t number) {
  Typed typed{ValueType::i32, {}};
  typed.value.as_i32 = number;
  return typed;
}

Typed ns(std::int64_t time_ns) { return u64(static_cast<std::uint64_t>(time_ns)); }

using Answer = std::optional<Typed>;

Answer energy_mj(Call& call) {
  if (call.card().no_energy_counter) {
    return std::nullopt;
  }
  return u64(static_cast<std::uint64_t>(call.history().counter_mj(call.now_ns)));
}

/// A row: the ids from first to last, and how to read one. Ids that no row has are not
/// supported, and neither are those for which the row has no answer.
struct Row {
  std::uint32_t first;
  std::uint32_t last;
  std::optional<Typed> (*read)(Call& call);
};

constexpr std::uint32_t kAdaArchitecture = 8;

/// Margins came with Ada; before it the thresholds are asked for by another call.
Answer margin_to(Call& call, std::int32_t limit_c) {
  if (call.card().architecture < kAdaArchitecture) {
    return std::nullopt;
  }
  return i32(limit_c - temperature_c(call));
}

constexpr Row kRows[] = {
    {74, 74, [](Call& call) -> Answer { return ns(call.now().capped_ns); }},
    {75, 75,
     [](Call& call) -> Answer {
       return ns(call.now().sw_thermal_ns + call.now().hw_thermal_ns);
     }},
    {76, 79, [](Call&) -> Answer { return u64(0); }},
    {81, 81, [](Call&) -> Answer { return u64(0); }},
    {82, 82,
     [](Call& call) -> Answer {
       return u32(static_cast<std::uint32_t>(std::max(0, temperature_c(call) - 4)));
     }},
    {83, 83, energy_mj},
    {138, 141, [](Call& call) -> Answer { return u64(pcie_bytes(call) / 1024); }},
    {142, 145,
     [](Call& call) -> Answer { return call.card().ecc ? Answer(u32(0)) : std::nullopt; }},
    {164, 164, [](Call&) -> Answer { return u32(26'562); }},
    {173, 183, [](Call&) -> Answer { return u32(0); }},
    {185, 185, [](Call& call) -> Answer { return u32(average_mw(call)); }},
    {186, 186, [](Call& call) -> Answer { return u32(instant_mw(call)); }},
    {187, 187, [](Call& call) -> Answer { return u32(call.card().min_mw); }},
    {188, 188, [](Call& call) -> Answer { return u32(call.card().max_mw); }},
    {189, 189, [](Call& call) -> Answer { return u32(call.card().default_mw); }},
    {190, 190, [](Call& call) -> Answer { return u32(call.now().enforced_mw()); }},
    {191, 191, energy_mj},
    {192, 192, [](Call& call) -> Answer { return u32(call.now().requested_mw); }},
    {193, 193, [](Call& call) { return margin_to(call, call.card().slowdown_c + 3); }},
    {194, 194, [](Call& call) { return margin_to(call, call.card().slowdown_c); }},
    {195, 195, [](Call& call) { return margin_to(call, call.card().slowdown_c + 10); }},
    {196, 196, [](Call& call) { return margin_to(call, call.card().slowdown_c - 8); }},
    {197, 198, [](Call& call) -> Answer { return u64(pcie_bytes(call)); }},
    {230, 230, [](Call& call) -> Answer { return u32(call.card().recovery_action); }},
    {269, 269, [](Call& call) -> Answer { return ns(call.now().sw_thermal_ns); }},
    {270, 270, [](Call& call) -> Answer { return ns(call.now().hw_thermal_ns); }},
    {271, 271, [](Call& call) -> Answer { return ns(call.now().brake_ns); }},
};

Answer read(Call& call, std::uint32_t id) {
  const auto& unknown = call.card().no_fields;
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [id](const Row& r) {
    return id >= r.first && id <= r.last;
  });
  if (row == std::end(kRows) ||
      std::find(unknown.begin(), unknown.end(), id) != unknown.end()) {
    return std::nullopt;
  }
  return id >= call.card().no_fields_from.value_or(id + 1) ? std::nullopt : row->read(call);
}

bool is_of_link(std::uint32_t id) { return (id >= 138 && id <= 141) || id == 164; }

/// The GPU itself has all fields and its module and memory have none; a link has its own,
/// which ~0 sums up.
bool has_scope(const Card& card, const FieldValue& field) {
  if (is_of_link(field.id)) {
    return field.scope < card.nvlinks || (card.nvlinks > 0 && field.scope == ~0U);
  }
  return field.scope == 0;
}

void fill(Call& call, FieldValue& field, std::int64_t timestamp_us) {
  field.timestamp_us = timestamp_us;
  field.latency_us = 0;
  if (const auto code = call.session.field_fault(call.handle.card, field.id)) {
    field.result = *code;
    return;
  }
  const Answer answer = has_scope(call.card(), field) ? read(call, field.id) : std::nullopt;
  field.result = answer ? Return::success : Return::not_supported;
  if (answer) {
    field.value_type = answer->type;
    field.value = answer->value;
  }
}

}  // namespace

HALFWATT_NVML_API Return nvmlDeviceGetFieldValues(Device device,
                                                  int count,
                                                  FieldValue* fields) {
  return answer(symbol("nvmlDeviceGetFieldValues"), device, Reach::whole_card, [=](Call& call) {
    if (count <= 0 || fields == nullptr) {
      return Return::invalid_argument;
    }
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t now_us =
        std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
    for (FieldValue& field : std::span(fields, static_cast<std::size_t>(count))) {
      fill(call, field, now_us);
    }
    return Return::success;
  });
}

}  // namespace halfwatt::fake_nvml

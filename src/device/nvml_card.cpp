#include "device/nvml_card.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "device/nvml_fields.h"
#include "device/nvml_processes.h"

namespace halfwatt {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kNano = 1e-9;
// As measured on an H200 (docs/devices.md); the check at the start measures this card's.
constexpr Seconds kUsualTick{0.1};
// Of instant power, from Turing on; older ones are faster (docs/devices.md).
constexpr Seconds kSensorPeriod{0.1};

}  // namespace

NvmlCard::NvmlCard(std::shared_ptr<const NvmlLibrary> library,
                   nvml::DeviceHandle handle,
                   const std::string& uuid,
                   const std::filesystem::path& root)
    : library_(std::move(library)),
      calls_(&library_->calls()),
      handle_(handle),
      own_([](pid_t pid) { return descends_from(pid, ::getpid()); }),
      sees_all_processes_(sees_all_processes(root)) {
  info_.id = {DeviceId::Kind::gpu_uuid, uuid};
  info_.sensor_period = kSensorPeriod;
}

Result<std::unique_ptr<NvmlCard>> NvmlCard::open(std::shared_ptr<const NvmlLibrary> library,
                                                 const std::string& uuid,
                                                 const std::filesystem::path& root) {
  const Result<nvml::DeviceHandle> handle = library->handle(uuid);
  if (!handle) {
    return handle.error();
  }
  const nvml::Calls& calls = library->calls();
  // Private constructor: make_unique cannot.
  std::unique_ptr<NvmlCard> card(new NvmlCard(std::move(library), *handle, uuid, root));
  std::array<char, nvml::kTextSize + 1> name{};
  if (calls.name != nullptr &&
      card->succeeded(calls.name(*handle, name.data(), nvml::kTextSize))) {
    card->info_.name = name.data();
  }
  card->info_.pci = pci_address(calls, *handle);
  std::uint32_t mig = 0;
  std::uint32_t pending = 0;
  card->info_.sliced = calls.mig_mode != nullptr &&
                       card->succeeded(calls.mig_mode(*handle, &mig, &pending)) && mig == 1;
  card->learn_limits();
  const bool counts = card->energy().has_value();
  const auto sample = card->read_quickly();
  if (!sample) {
    return sample.error();
  }
  card->take(usual_judgement(counts, (*sample)[SignalId::power].has_value(), kUsualTick));
  return card;
}

// Notes a lost card, and says whether the call gave a value.
bool NvmlCard::succeeded(nvml::Return code) {
  lost_ = lost_ || code == nvml::kGpuIsLost;
  return code == nvml::kSuccess;
}

Error NvmlCard::lost_error() const {
  return {ErrorKind::device,
          fmt::format("{}: {}", info_.id.text(), nvml_text(nvml::kGpuIsLost))};
}

std::optional<double> NvmlCard::number(nvml::Number* ask, double unit) {
  std::uint32_t value = 0;
  if (ask == nullptr || !succeeded(ask(handle_, &value))) {
    return std::nullopt;
  }
  return value * unit;
}

void NvmlCard::learn_limits() {
  std::uint32_t min_mw = 0;
  std::uint32_t max_mw = 0;
  if (calls_->limit_range_mw == nullptr ||
      !succeeded(calls_->limit_range_mw(handle_, &min_mw, &max_mw)) || max_mw == 0) {
    return;
  }
  info_.limits = LimitRange{Watts(min_mw * kMilli), Watts(max_mw * kMilli), std::nullopt};
  if (const auto preset = number(calls_->default_limit_mw, kMilli)) {
    info_.limits->preset = Watts(*preset);
  }
}

Result<Sample> NvmlCard::read_quickly() { return read_power(FieldSet::quick); }

Result<Sample> NvmlCard::read_power(FieldSet set) {
  lost_ = false;
  Sample sample;
  succeeded(read_fields(*calls_, handle_, set, sample));
  fill_in_power(sample);
  if (lost_) {
    return lost_error();
  }
  if (info_.limits) {
    sample[SignalId::min_limit] = info_.limits->min.value();
    sample[SignalId::max_limit] = info_.limits->max.value();
    if (info_.limits->preset) {
      sample[SignalId::default_limit] = info_.limits->preset->value();
    }
  }
  return sample;
}

// Older drivers and cards have no fields for these, and a function for each.
void NvmlCard::fill_in_power(Sample& sample) {
  const auto fill = [&sample](SignalId id, auto ask) {
    if (!sample[id]) {
      sample[id] = ask();
    }
  };
  fill(SignalId::power, [this] { return number(calls_->power_mw, kMilli); });
  fill(SignalId::requested_limit,
       [this] { return number(calls_->requested_limit_mw, kMilli); });
  fill(SignalId::enforced_limit, [this] { return number(calls_->enforced_limit_mw, kMilli); });
  fill(SignalId::power_capped_time, [this] { return violation(nvml::kPowerPolicy); });
}

Result<Sample> NvmlCard::read() {
  Result<Sample> read = read_power(FieldSet::all);
  if (!read) {
    return read;
  }
  Sample& sample = *read;
  if (!sample[SignalId::thermal_time]) {
    sample[SignalId::thermal_time] = violation(nvml::kThermalPolicy);
  }
  // Times of several reasons may overlap: their sum is too large rather than too small.
  for (const SignalId part : {SignalId::thermal_time, SignalId::board_limit_time,
                              SignalId::reliability_time, SignalId::software_thermal_time,
                              SignalId::hardware_thermal_time, SignalId::power_brake_time}) {
    if (const auto& time = sample[part]) {
      auto& sum = sample[SignalId::throttled_time];
      sum = sum.value_or(0) + *time;
    }
  }
  sample[SignalId::sm_clock] = clock(nvml::kSmClock);
  sample[SignalId::memory_clock] = clock(nvml::kMemoryClock);
  sample[SignalId::graphics_clock] = clock(nvml::kGraphicsClock);
  sample[SignalId::temperature] = temperature();
  sample[SignalId::temperature_margin] = margin();
  sample[SignalId::fan] = fan();
  sample[SignalId::pcie_generation] = number(calls_->pcie_generation, 1);
  sample[SignalId::pcie_width] = number(calls_->pcie_width, 1);
  sample[SignalId::ecc_corrected] = ecc(0);
  sample[SignalId::ecc_uncorrected] = ecc(1);
  read_activity(sample);
  read_memory(sample);
  if (lost_) {
    return lost_error();
  }
  return read;
}

std::optional<double> NvmlCard::clock(nvml::Clock which) {
  std::uint32_t mhz = 0;
  if (calls_->clock_mhz == nullptr || !succeeded(calls_->clock_mhz(handle_, which, &mhz))) {
    return std::nullopt;
  }
  return mhz;
}

std::optional<double> NvmlCard::violation(nvml::ViolationPolicy policy) {
  nvml::ViolationTime time{};
  if (calls_->violation == nullptr || !succeeded(calls_->violation(handle_, policy, &time))) {
    return std::nullopt;
  }
  return static_cast<double>(time.violation_ns) * kNano;
}

std::optional<double> NvmlCard::ecc(std::uint32_t type) {
  constexpr std::uint32_t kSinceDriverLoad = 0;
  std::uint64_t errors = 0;
  if (calls_->ecc_errors == nullptr ||
      !succeeded(calls_->ecc_errors(handle_, type, kSinceDriverLoad, &errors))) {
    return std::nullopt;
  }
  return static_cast<double>(errors);
}

std::optional<double> NvmlCard::temperature() {
  constexpr std::uint32_t kOfGpu = 0;
  nvml::Temperature versioned{nvml::version<nvml::Temperature>(1), kOfGpu, 0};
  if (calls_->temperature_v != nullptr &&
      succeeded(calls_->temperature_v(handle_, &versioned))) {
    return versioned.celsius;
  }
  std::uint32_t celsius = 0;
  if (calls_->temperature == nullptr ||
      !succeeded(calls_->temperature(handle_, kOfGpu, &celsius))) {
    return std::nullopt;
  }
  return celsius;
}

std::optional<double> NvmlCard::margin() {
  nvml::MarginTemperature margin{nvml::version<nvml::MarginTemperature>(1), 0};
  // Some cards answer zero or less at any temperature: that is no margin.
  if (calls_->margin == nullptr || !succeeded(calls_->margin(handle_, &margin)) ||
      margin.celsius <= 0) {
    return std::nullopt;
  }
  return margin.celsius;
}

std::optional<double> NvmlCard::fan() {
  std::uint32_t percent = 0;
  if (calls_->fan_percent != nullptr && succeeded(calls_->fan_percent(handle_, 0, &percent))) {
    return percent;
  }
  return number(calls_->first_fan_percent, 1);
}

void NvmlCard::read_activity(Sample& sample) {
  std::uint64_t reasons = 0;
  if (calls_->event_reasons != nullptr && succeeded(calls_->event_reasons(handle_, &reasons))) {
    sample[SignalId::event_reasons] = static_cast<double>(reasons);
  }
  // Of a sliced card there is none; some drivers say 0 instead.
  nvml::Utilization busy{};
  if (!info_.sliced && calls_->utilization != nullptr &&
      succeeded(calls_->utilization(handle_, &busy))) {
    sample[SignalId::gpu_utilisation] = busy.gpu;
    sample[SignalId::memory_utilisation] = busy.memory;
  }
  if (const auto processes = read_processes(*calls_, handle_, lost_)) {
    sample[SignalId::foreign_processes] = count_foreign(*processes, own_, sees_all_processes_);
  }
}

void NvmlCard::read_memory(Sample& sample) {
  nvml::MemoryInfoV2 newer{};
  newer.version = nvml::version<nvml::MemoryInfoV2>(2);
  nvml::MemoryInfo older{};
  if (calls_->memory_v2 != nullptr && succeeded(calls_->memory_v2(handle_, &newer))) {
    older = {newer.total, newer.free, newer.used};
  } else if (calls_->memory == nullptr || !succeeded(calls_->memory(handle_, &older))) {
    return;
  }
  if (older.total == 0) {
    return;  // a card that shares the memory of its host
  }
  sample[SignalId::memory_total] = static_cast<double>(older.total);
  sample[SignalId::memory_used] = static_cast<double>(older.used);
}

std::optional<Joules> NvmlCard::energy() {
  std::uint64_t energy_mj = 0;
  if (!counter_is_trusted_ || calls_->energy_mj == nullptr ||
      calls_->energy_mj(handle_, &energy_mj) != nvml::kSuccess) {
    return std::nullopt;
  }
  return Joules(static_cast<double>(energy_mj) * kMilli);
}

void NvmlCard::take(const EnergyJudgement& judgement) {
  info_.energy_method = judgement.method;
  info_.energy_tick = judgement.tick;
  info_.energy_error = judgement.relative_error;
  info_.energy_is_checked = judgement.checked;
  counter_is_trusted_ = judgement.method == EnergyMethod::counter;
}

}  // namespace halfwatt

#include "guard/nvml_limit.h"

#include <fmt/format.h>

#include <cmath>

#include "guard/privilege.h"

namespace halfwatt {
namespace {

// nvml.h of API 13, as device/nvml_api.h; what writes is declared here and nowhere else.
struct PowerValue {
  std::uint32_t version;
  std::uint8_t scope;  // 0: the GPU
  std::uint32_t limit_mw;
};
static_assert(sizeof(PowerValue) == 12);
constexpr std::uint32_t kPowerValueVersion = nvml::version<PowerValue>(2);
static_assert(kPowerValueVersion == 0x0200000c);

using SetLimit = nvml::Return(nvml::DeviceHandle, std::uint32_t);
using SetLimitV2 = nvml::Return(nvml::DeviceHandle, PowerValue*);

constexpr const char* kSetLimit = "nvmlDeviceSetPowerManagementLimit";
constexpr const char* kSetLimitV2 = "nvmlDeviceSetPowerManagementLimit_v2";

Watts watts(std::uint32_t limit_mw) { return Watts(limit_mw / 1000.0); }

std::optional<Watts> ask(nvml::Number* number, nvml::DeviceHandle card) {
  std::uint32_t limit_mw = 0;
  const bool told = number != nullptr && number(card, &limit_mw) == nvml::kSuccess;
  return told ? std::optional(watts(limit_mw)) : std::nullopt;
}

std::optional<LimitRange> range_of(const nvml::Calls& calls, nvml::DeviceHandle card) {
  std::uint32_t min_mw = 0;
  std::uint32_t max_mw = 0;
  const bool told = calls.limit_range_mw != nullptr &&
                    calls.limit_range_mw(card, &min_mw, &max_mw) == nvml::kSuccess &&
                    min_mw > 0 && min_mw <= max_mw;
  if (!told) {
    return std::nullopt;
  }
  return LimitRange{watts(min_mw), watts(max_mw), ask(calls.default_limit_mw, card)};
}

}  // namespace

Result<std::unique_ptr<LimitControl>> NvmlLimit::open(
    std::shared_ptr<const NvmlLibrary> library, const std::string& uuid) {
  const Result<nvml::DeviceHandle> card = library->handle(uuid);
  if (!card) {
    return card.error();
  }
  return std::unique_ptr<LimitControl>(new NvmlLimit(std::move(library), *card, uuid));
}

Error NvmlLimit::error(const char* what, nvml::Return code) const {
  return {ErrorKind::device, fmt::format("{}: {}: {}", uuid_, what, nvml_text(code))};
}

Result<Watts> NvmlLimit::read() {
  nvml::Number* const ask_limit = library_->calls().requested_limit_mw;
  std::uint32_t limit_mw = 0;
  const nvml::Return code =
      ask_limit == nullptr ? nvml::kFunctionNotFound : ask_limit(card_, &limit_mw);
  if (code != nvml::kSuccess) {
    return error("the power limit cannot be read", code);
  }
  return watts(limit_mw);
}

Result<LimitState> NvmlLimit::look() {
  const Result<Watts> requested = read();
  if (!requested) {
    return requested.error();
  }
  const nvml::Calls& calls = library_->calls();
  LimitState state{
      *requested, ask(calls.enforced_limit_mw, card_), range_of(calls, card_), {}, false};
  std::uint32_t now = 0;
  std::uint32_t later = 0;
  if (calls.persistence != nullptr && calls.persistence(card_, &now) == nvml::kSuccess) {
    state.persistence = now != 0;
  }
  state.sliced = calls.mig_mode != nullptr &&
                 calls.mig_mode(card_, &now, &later) == nvml::kSuccess && now != 0;
  return state;
}

// The older function is there in every driver, and does the same for the GPU.
nvml::Return NvmlLimit::set(std::uint32_t limit_mw) const {
  nvml::Return code = nvml::kFunctionNotFound;
  if (auto* newer = reinterpret_cast<SetLimitV2*>(library_->symbol(kSetLimitV2))) {
    PowerValue value{kPowerValueVersion, 0, limit_mw};
    code = newer(card_, &value);
  }
  const bool go_on = code == nvml::kFunctionNotFound ||
                     code == nvml::kArgumentVersionMismatch || code == nvml::kNotSupported;
  auto* older = reinterpret_cast<SetLimit*>(library_->symbol(kSetLimit));
  return go_on && older != nullptr ? older(card_, limit_mw) : code;
}

Result<void> NvmlLimit::write(Watts limit) {
  const nvml::Return code = set(static_cast<std::uint32_t>(std::lround(limit.value() * 1000)));
  if (code == nvml::kSuccess) {
    return {};
  }
  Error failure = error(fmt::format("cannot set {:g} W", limit.value()).c_str(), code);
  if (code == nvml::kNoPermission) {
    failure.message += "; " + ways_to_set_limits();
  } else if (code == nvml::kNotSupported) {
    failure.message += "; its vendor allows no limit; use --measure-only";
  }
  return failure;
}

}  // namespace halfwatt

#include "base/device_id.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt {

Result<DeviceId> DeviceId::parse(std::string_view text) {
  const auto rest_after = [text](std::string_view prefix) {
    return std::string(text.substr(prefix.size()));
  };
  if (text == "cpu") {
    return DeviceId{Kind::cpu, ""};
  }
  if (text.starts_with("sim:") && text.size() > 4) {
    return DeviceId{Kind::simulated, rest_after("sim:")};
  }
  if (text.starts_with("GPU-")) {
    return DeviceId{Kind::gpu_uuid, std::string(text)};
  }
  if (text.starts_with("gpu:")) {
    std::string index = rest_after("gpu:");
    const bool digits =
        !index.empty() && index.size() <= 4 &&
        std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits) {
      return DeviceId{Kind::gpu_index, std::move(index)};
    }
  }
  return bad_input(fmt::format(
      "--device {}: not a device; needed gpu:N, GPU-<uuid>, cpu, sim:rtx3090 or sim:FILE.csv",
      text));
}

std::string DeviceId::text() const {
  switch (kind) {
    case Kind::gpu_index:
      return "gpu:" + name;
    case Kind::gpu_uuid:
      return name;
    case Kind::cpu:
      return "cpu";
    case Kind::simulated:
      return "sim:" + name;
  }
  return name;
}

}  // namespace halfwatt

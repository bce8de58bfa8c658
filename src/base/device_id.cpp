#include "base/device_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace halfwatt {
namespace {

std::optional<unsigned> hexadecimal(std::string_view digits, std::size_t most) {
  unsigned value = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value, 16);
  const bool whole = read.ec == std::errc() && read.ptr == end;
  return whole && digits.size() <= most ? std::optional(value) : std::nullopt;
}

// `65:00.0`, `0000:65:00.0` or `00000000:65:00.0`, as lspci, Linux and NVML write it.
std::optional<std::string> pci_name(std::string_view text) {
  if (!text.ends_with(".0")) {
    return std::nullopt;  // a GPU is function 0
  }
  text.remove_suffix(2);
  std::vector<unsigned> parts;
  while (true) {
    const std::size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const bool is_domain = parts.empty() && part.size() > 2;
    const auto value = hexadecimal(part, is_domain ? 8 : 2);
    if (!value) {
      return std::nullopt;
    }
    if (parts.empty() && !is_domain) {
      parts.push_back(0);
    }
    parts.push_back(*value);
    if (colon == std::string_view::npos) {
      break;
    }
    text.remove_prefix(colon + 1);
  }
  return parts.size() == 3 ? std::optional(pci_text(parts[0], parts[1], parts[2]))
                           : std::nullopt;
}

}  // namespace

std::string pci_text(unsigned domain, unsigned bus, unsigned device) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
}

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
  if (text.starts_with("MIG-")) {
    return bad_input(fmt::format(
        "--device {}: a slice has no power of its own; needed its card, gpu:N or GPU-<uuid>",
        text));
  }
  if (auto name = pci_name(text)) {
    return DeviceId{Kind::gpu_pci, std::move(*name)};
  }
  return bad_input(
      fmt::format("--device {}: not a device; needed gpu:N, GPU-<uuid>, a PCI id such as "
                  "0000:65:00.0, cpu, sim:rtx3090 or sim:FILE.csv",
                  text));
}

std::string DeviceId::text() const {
  switch (kind) {
    case Kind::gpu_index:
      return "gpu:" + name;
    case Kind::gpu_uuid:
    case Kind::gpu_pci:
      return name;
    case Kind::cpu:
      return "cpu";
    case Kind::simulated:
      return "sim:" + name;
  }
  return name;
}

}  // namespace halfwatt

#include "measure/series.h"

namespace halfwatt {

std::string_view text(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::recorded:
      return "recorded";
    case Provenance::simulated:
      break;
  }
  return "simulated";
}

std::optional<Provenance> provenance(std::string_view word) {
  for (const auto each : {Provenance::measured, Provenance::recorded, Provenance::simulated}) {
    if (word == text(each)) {
      return each;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> label(const Labels& labels, std::string_view name) {
  for (const auto& [key, value] : labels) {
    if (key == name) {
      return value;
    }
  }
  return std::nullopt;
}

std::string text(const Labels& labels) {
  std::string joined;
  for (const auto& [key, value] : labels) {
    joined += (joined.empty() ? "" : " ") + value;
  }
  return joined;
}

}  // namespace halfwatt

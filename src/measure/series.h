#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "measure/measurement.h"

namespace halfwatt {

/// Where figures come from; every output says it.
enum class Provenance {
  measured,   ///< by halfwatt on a real device
  recorded,   ///< by somebody else, read from a file
  simulated,  ///< played back or made up
};

std::string_view text(Provenance provenance);
std::optional<Provenance> provenance(std::string_view word);

/// What names a series: ("precision", "fp32"), in the order of the file.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// The value of `name`, or nullopt.
std::optional<std::string_view> label(const Labels& labels, std::string_view name);
/// "train fp32 160": the values, separated by spaces.
std::string text(const Labels& labels);

/// All windows of one workload on one device along one knob.
struct Series {
  Labels labels;
  std::string device;  ///< name of the card, "unknown" where the file does not say
  int cards = 1;       ///< that one job used: energy is of all, a limit is of each
  Knob knob = power_limit_knob();
  Provenance provenance = Provenance::recorded;
  std::optional<LimitRange> limits;
  std::vector<Measurement> measurements;
  std::string source;  ///< file it was read from
  std::string remark;  ///< what qualifies its figures, one sentence; empty: nothing known
};

}  // namespace halfwatt

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numerical_state.h"
#include "base/result.h"
#include "device/energy_method.h"
#include "measure/series.h"

namespace halfwatt {

/// A card that a file of recordings was measured on.
struct NotedDevice {
  std::string name;
  std::optional<LimitRange> limits;
};

/// What is known about some series beyond their figures.
struct NotedSeries {
  Labels match;  ///< applies to every series with all of these labels
  NumericalState numerical_state = NumericalState::unknown;
  std::string reason;
  std::string source;
};

/// What `FILE.notes.json` says about `FILE.csv`: facts about the recording that have no column.
struct ImportNotes {
  std::string source;
  std::string terms;
  std::string item;  ///< what a step yields: "image"
  std::optional<EnergyMethod> energy_method;
  std::vector<NotedDevice> devices;
  std::vector<NotedSeries> series;
};

/// Reads the sidecar's JSON (docs/csv.md). Unknown and repeated keys are refused, since a
/// typing error would silently leave a dead series standing. `file`: how messages name it.
Result<ImportNotes> read_notes(std::string_view text, const std::string& file);

}  // namespace halfwatt

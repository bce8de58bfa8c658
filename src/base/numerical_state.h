#pragma once

#include <optional>
#include <string_view>

namespace halfwatt {

/// Whether the numbers a workload computed mean anything.
enum class NumericalState {
  unknown,   ///< no loss and no weights were seen
  live,      ///< finite and moving
  skipping,  ///< most steps overflow and are not applied
  stalled,   ///< finite and not changing to the last digit
  dead,      ///< not finite: no figure of such a run counts
};

constexpr std::string_view text(NumericalState state) {
  switch (state) {
    case NumericalState::live:
      return "live";
    case NumericalState::skipping:
      return "skipping";
    case NumericalState::stalled:
      return "stalled";
    case NumericalState::dead:
      return "dead";
    case NumericalState::unknown:
      break;
  }
  return "unknown";
}

constexpr std::optional<NumericalState> numerical_state(std::string_view word) {
  for (const auto state :
       {NumericalState::unknown, NumericalState::live, NumericalState::skipping,
        NumericalState::stalled, NumericalState::dead}) {
    if (word == text(state)) {
      return state;
    }
  }
  return std::nullopt;
}

}  // namespace halfwatt

#include "measure/measurement.h"

#include <algorithm>

namespace halfwatt {

std::optional<Joules> Measurement::joules_per_item() const {
  if (!energy.value || work.steps <= 0) {
    return std::nullopt;
  }
  return *energy.value / (work.steps * work.items_per_step);
}

bool Measurement::counts() const {
  return numerical_state != NumericalState::dead &&
         numerical_state != NumericalState::stalled &&
         std::none_of(notes.begin(), notes.end(), invalidates);
}

bool Measurement::settled() const {
  return counts() || numerical_state == NumericalState::dead ||
         std::any_of(notes.begin(), notes.end(), [](WindowNote note) {
           return note == WindowNote::rejected_too_often || note == WindowNote::does_not_fit;
         });
}

}  // namespace halfwatt

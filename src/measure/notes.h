#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace halfwatt {

/// What qualifies one window's figures. The table in notes.cpp gives each a word for files, a
/// sentence for people, and says whether the window may still count.
enum class WindowNote {
  clamped,
  not_enforced,
  limit_reverted,
  never_settled,
  thermal_throttle,
  temperature_drift,
  foreign_process,
  counter_reset,
  energy_disagrees,
  unsteady,
  cap_not_binding,
  rejected_too_often,
  no_progress,
  does_not_fit,
  job_failed,
  job_restarted,
  suspended,
  progress_changed,
  shared_card,
};

/// The word in records: "thermal-throttle".
std::string_view word(WindowNote note);
/// One sentence with what it means for the figures.
std::string_view sentence(WindowNote note);
/// The note whose word this is.
std::optional<WindowNote> note(std::string_view word);
/// Whether a window with this note must not count.
bool invalidates(WindowNote note);

using Notes = std::vector<WindowNote>;

}  // namespace halfwatt

#include "measure/notes.h"

#include <array>

namespace halfwatt {
namespace {

struct Row {
  WindowNote note;
  std::string_view word;
  std::string_view sentence;
  bool invalidates;
};

constexpr std::array kNotes = {
    Row{WindowNote::clamped, "clamped",
        "the limit asked for is outside the card's range; the nearest it takes was used",
        false},
    Row{WindowNote::not_enforced, "not-enforced",
        "the card enforces another limit than the one set", true},
    Row{WindowNote::limit_reverted, "limit-reverted",
        "somebody else changed the limit during the window", true},
    Row{WindowNote::never_settled, "never-settled",
        "speed or temperature was still moving when the window began", false},
    Row{WindowNote::thermal_throttle, "thermal-throttle",
        "heat, the power brake or a board limit slowed the card", true},
    Row{WindowNote::temperature_drift, "temperature-drift",
        "the card's temperature moved by more than 3 C", true},
    Row{WindowNote::foreign_process, "foreign-process", "another process used the card", true},
    Row{WindowNote::counter_reset, "counter-reset",
        "the energy counter went back: the joules are void", true},
    Row{WindowNote::energy_disagrees, "energy-disagrees",
        "the energy counter and the sampled power differ by more than 5 %", true},
    Row{WindowNote::unsteady, "unsteady", "step times vary by more than 10 %", true},
    Row{WindowNote::cap_not_binding, "cap-not-binding",
        "the card never drew as much as the limit allows", false},
    Row{WindowNote::rejected_too_often, "rejected-too-often",
        "every repeat of this window was rejected; the last one is kept and not used", true},
    Row{WindowNote::no_progress, "no-progress", "the workload did no step under this setting",
        true},
    Row{WindowNote::does_not_fit, "does-not-fit",
        "the command ran out of memory under this setting", true},
    Row{WindowNote::job_failed, "job-failed", "the command failed under this setting", true},
    Row{WindowNote::job_restarted, "job-restarted",
        "the command ended and was started again during the window; one that runs longer is "
        "needed",
        true},
    Row{WindowNote::suspended, "suspended",
        "the machine or halfwatt was suspended during the window", true},
    Row{WindowNote::progress_changed, "progress-changed",
        "something else became what is counted as steps during the window", true},
    Row{WindowNote::shared_card, "shared-card",
        "others may have used the card, too (--shared): speed and joules may be partly theirs",
        false},
};

const Row& row(WindowNote note) { return kNotes.at(static_cast<std::size_t>(note)); }

}  // namespace

std::string_view word(WindowNote note) { return row(note).word; }
std::string_view sentence(WindowNote note) { return row(note).sentence; }
bool invalidates(WindowNote note) { return row(note).invalidates; }

std::optional<WindowNote> note(std::string_view word) {
  for (const Row& candidate : kNotes) {
    if (candidate.word == word) {
      return candidate.note;
    }
  }
  return std::nullopt;
}

}  // namespace halfwatt

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "guard/guardian_state.h"

namespace halfwatt {

/// Who dies.
enum class Victim { parent, guardian, both };

/// What of.
enum class Cause { kill, segv, term, exception, child_crash };

/// Where the parent stands in the loop that changes limits.
enum class ParentState { started, held, set, window, restoring };

/// How both die at once.
enum class DoubleDeath { one_by_one, pid_namespace, cgroup };

/// One death, in one state of the loop.
struct Death {
  Victim victim = Victim::guardian;
  Cause cause = Cause::kill;
  std::optional<GuardianState> guardian_at;  ///< either this
  std::optional<ParentState> parent_at;      ///< or this
  int occurrence = 1;                        ///< the first time it comes there, or a later one
  int cards = 1;
  DoubleDeath together = DoubleDeath::one_by_one;
  bool stranger = false;  ///< somebody else sets the first card just before
};

/// What became of the cards.
struct Aftermath {
  bool died = false;                 ///< the death was reached; without it nothing was tested
  bool restored = false;             ///< every card has the limit that was found
  bool foreign_overwritten = false;  ///< the stranger's limit is gone
  double seconds = 0;                ///< from the death to the last write of a found limit
  std::string what = {};             ///< for the reader of a failure
};

std::string_view text(Victim victim);
std::string_view text(Cause cause);
std::string_view text(GuardianState state);
std::string_view text(ParentState state);
std::string_view text(DoubleDeath together);
std::string describe(const Death& death);

/// Runs a halfwatt on fake cards that dies like that, and judges by the fake's own history.
/// After a double death the next start is part of it.
Aftermath die(const Death& death);

/// Why this machine cannot have such a death; nullopt if it can.
std::optional<std::string> cannot_die(DoubleDeath together);

/// The hook that makes a guardian die as its environment says; an empty one without.
StateHook death_hook();

}  // namespace halfwatt

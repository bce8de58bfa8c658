#pragma once

#include <array>
#include <functional>

namespace halfwatt {

/// Where a guardian stands. Death must do no harm in any of these; tests kill in each.
enum class GuardianState {
  started,             ///< runs, has touched nothing
  opened,              ///< a card's control is open
  locked,              ///< the card is ours
  recovered,           ///< what an earlier halfwatt left is put back
  waiting,             ///< all cards are held, or a set is answered
  journalled,          ///< an intent is on the disk
  written,             ///< the card has the limit
  read_back,           ///< and says so
  restoring,           ///< about to put a card back
  restore_journalled,  ///< that is on the disk
  restore_written,     ///< the card has the found limit
  restored,            ///< and the entry is closed
};

inline constexpr std::array kGuardianStates = {
    GuardianState::started,         GuardianState::opened,
    GuardianState::locked,          GuardianState::recovered,
    GuardianState::waiting,         GuardianState::journalled,
    GuardianState::written,         GuardianState::read_back,
    GuardianState::restoring,       GuardianState::restore_journalled,
    GuardianState::restore_written, GuardianState::restored,
};

/// Called on entering a state; empty but in tests.
using StateHook = std::function<void(GuardianState)>;

}  // namespace halfwatt

#pragma once

#include <string>

#include "base/result.h"
#include "guard/guardian_state.h"
#include "guard/journal.h"
#include "guard/limit_control.h"
#include "guard/restore_rule.h"

namespace halfwatt {

/// What became of a card with an entry in the journal.
struct PutBack {
  RestoreAction action;
  std::string sentence;  ///< what to tell people, with the values
};

/// How to put a card back.
struct PutBackRules {
  LoadId now;
  bool force = false;  ///< write the found limit even over somebody else's
  StateHook at = {};
};

/// Does what restore_action() says, proves it by reading, and closes the entry unless the limit
/// is foreign. Errors: not_restored, and the entry stays, where the card cannot be read or does
/// not take the found limit.
Result<PutBack> put_back(LimitControl& control,
                         const Journal& journal,
                         const JournalEntry& entry,
                         const PutBackRules& rules);

}  // namespace halfwatt

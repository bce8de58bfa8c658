#pragma once

#include "base/units.h"
#include "guard/journal.h"

namespace halfwatt {

/// What to do with a card that has an entry in the journal.
enum class RestoreAction {
  put_back,   ///< the limit is one of ours: write the found one
  done,       ///< the found limit is in force
  forgotten,  ///< the machine or its driver started anew, which dropped our limit
  foreign,    ///< somebody else set what is in force: leave it alone
};

/// The rule, in this order: the found limit in force is done, a new boot or a newly loaded
/// driver has forgotten, the last intent or the one before is ours (and what it may have been
/// rounded to, until it was read back), all else is foreign.
RestoreAction restore_action(const JournalEntry& entry, const LoadId& now, Watts in_force);

}  // namespace halfwatt

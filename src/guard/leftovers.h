#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/card_lock.h"
#include "guard/journal.h"
#include "guard/put_back.h"

namespace halfwatt {

/// A card that halfwatt has changed, or holds: what status and restore know about it.
struct KnownCard {
  std::string card;
  std::filesystem::path state;        ///< the folder of its entry
  std::optional<JournalEntry> entry;  ///< absent: held, but nothing is noted yet
  std::optional<Error> unreadable;    ///< the entry is there and makes no sense
  std::optional<Holder> holder;       ///< absent: whoever changed it is gone
};

/// Every card with an entry or a holder: in `state_dir` where given, otherwise in root's folder
/// and in the user's own. In order of their names.
std::vector<KnownCard> known_cards(const std::optional<std::string>& state_dir);

/// Puts a card back that nobody holds any more. Errors: somebody holds it, it is not there, or
/// as put_back().
Result<PutBack> put_back_known(const KnownCard& card, bool force);

}  // namespace halfwatt

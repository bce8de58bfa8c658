#include "guard/leftovers.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "guard/controls.h"
#include "guard/folders.h"

namespace halfwatt {
namespace {

// A guardian that is just putting back lets go within this time.
constexpr Seconds kPatience{3};

std::optional<Holder> holder_of(const std::filesystem::path& state, const std::string& card) {
  const auto shared = find_holder(kSharedLocks, card);
  return shared ? shared : find_holder(state / kLocksInState, card);
}

std::vector<KnownCard> cards_in(const std::filesystem::path& state) {
  const Journal journal(state);
  std::vector<KnownCard> found;
  std::set<std::string> names;
  for (const std::string& card : journal.cards()) {
    names.insert(card);
  }
  for (const std::string& card : locked_cards(state / kLocksInState)) {
    names.insert(card);
  }
  for (const std::string& card : names) {
    KnownCard known{card, state, {}, {}, holder_of(state, card)};
    if (const auto entry = journal.read(card); entry) {
      known.entry = *entry;
    } else {
      known.unreadable = entry.error();
    }
    if (known.entry || known.unreadable || known.holder) {
      found.push_back(std::move(known));
    }
  }
  return found;
}

}  // namespace

std::vector<KnownCard> known_cards(const std::optional<std::string>& state_dir) {
  std::vector<KnownCard> all;
  for (const auto& state : state_folders(state_dir)) {
    for (KnownCard& card : cards_in(state)) {
      all.push_back(std::move(card));
    }
  }
  for (const std::string& card : locked_cards(kSharedLocks)) {
    const bool listed = std::any_of(all.begin(), all.end(),
                                    [&](const KnownCard& each) { return each.card == card; });
    if (const auto holder = find_holder(kSharedLocks, card); holder && !listed && !state_dir) {
      all.push_back({card, {}, {}, {}, holder});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const KnownCard& a, const KnownCard& b) { return a.card < b.card; });
  return all;
}

Result<PutBack> put_back_known(const KnownCard& card, bool force) {
  if (card.unreadable) {
    return *card.unreadable;
  }
  const GuardFolders folders = guard_folders(card.state.string(), is_shared_card(card.card));
  const auto lock = CardLock::take(folders.locks, card.card, holder(::getpid()), kPatience);
  if (!lock) {
    return lock.error();
  }
  // Whoever held it until now may have put it back.
  const Journal journal(card.state);
  const auto entry = journal.read(card.card);
  if (!entry) {
    return entry.error();
  }
  if (!*entry) {
    return PutBack{RestoreAction::done, card.card + ": was put back by whoever held it"};
  }
  LimitControls controls;
  const auto control = controls.open(card.card);
  if (!control) {
    return Error{ErrorKind::not_restored, control.error().message};
  }
  return put_back(**control, journal, **entry, {current_load(), force});
}

}  // namespace halfwatt

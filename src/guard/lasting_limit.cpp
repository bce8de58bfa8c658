#include "guard/lasting_limit.h"

#include <fmt/format.h>
#include <unistd.h>

#include "guard/card_lock.h"
#include "guard/controls.h"
#include "guard/folders.h"
#include "guard/journal.h"

namespace halfwatt {
namespace {

constexpr Seconds kPatience{3};

/// A card that is locked and may take its new limit.
struct Ready {
  std::string card;
  CardLock lock;
  std::unique_ptr<LimitControl> control;
  LimitState before;
  Watts limit;
  Journal journal;
};

Result<Watts> wanted(const LastingLimit& asked, const LimitState& state) {
  if (state.sliced) {
    return Error{
        ErrorKind::device,
        fmt::format("{}: MIG is on, and a power limit would hit every slice", asked.card)};
  }
  if (!state.range) {
    return Error{ErrorKind::device,
                 fmt::format("{}: the card does not tell which limits it takes", asked.card)};
  }
  const LimitRange& range = *state.range;
  if (!asked.limit && !range.preset) {
    return Error{ErrorKind::device,
                 fmt::format("{}: the card does not tell its default; needed a number from "
                             "{:g} to {:g} W",
                             asked.card, range.min.value(), range.max.value())};
  }
  const Watts limit = asked.limit ? *asked.limit : *range.preset;
  if (!(limit >= range.min && limit <= range.max)) {
    return bad_input(fmt::format("limit {:g}: {} takes {:g}-{:g} W", limit.value(), asked.card,
                                 range.min.value(), range.max.value()));
  }
  return limit;
}

Result<Ready> prepare(const LastingLimit& asked,
                      LimitControls& controls,
                      const std::optional<std::string>& state_dir) {
  const GuardFolders folders = guard_folders(state_dir, is_shared_card(asked.card));
  auto lock = CardLock::take(folders.locks, asked.card, holder(::getpid()), kPatience);
  if (!lock) {
    return lock.error();
  }
  auto control = controls.open(asked.card);
  if (!control) {
    return control.error();
  }
  const Result<LimitState> before = (*control)->look();
  if (!before) {
    return before.error();
  }
  const Result<Watts> limit = wanted(asked, *before);
  if (!limit) {
    return limit.error();
  }
  return Ready{asked.card, std::move(*lock), std::move(*control),
               *before,    *limit,           Journal(folders.state)};
}

Result<Watts> write(Ready& ready) {
  if (const Result<void> written = ready.control->write(ready.limit); !written) {
    return written.error();
  }
  Result<Watts> now = ready.control->read();
  if (now && !same_limit(*now, ready.limit)) {
    return Error{ErrorKind::device,
                 fmt::format("{}: was set to {:g} W and says {:g} W: the card or its driver "
                             "does not take it",
                             ready.card, ready.limit.value(), now->value())};
  }
  (void)ready.journal.close(ready.card);
  return now;
}

}  // namespace

Result<std::vector<LimitChange>> set_lasting(const std::vector<LastingLimit>& limits,
                                             const std::optional<std::string>& state_dir) {
  LimitControls controls;
  std::vector<Ready> cards;
  for (const LastingLimit& asked : limits) {
    Result<Ready> ready = prepare(asked, controls, state_dir);
    if (!ready) {
      return ready.error();
    }
    cards.push_back(std::move(*ready));
  }
  std::vector<LimitChange> changes;
  for (Ready& each : cards) {
    const Result<Watts> now = write(each);
    if (!now) {
      for (std::size_t back = 0; back <= changes.size(); ++back) {
        (void)cards[back].control->write(cards[back].before.requested);
      }
      return now.error();
    }
    changes.push_back({each.card, each.before, *now});
  }
  return changes;
}

}  // namespace halfwatt

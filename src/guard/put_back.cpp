#include "guard/put_back.h"

#include <fmt/format.h>
#include <signal.h>

#include <optional>

namespace halfwatt {
namespace {

void enter(const PutBackRules& rules, GuardianState state) {
  if (rules.at) {
    rules.at(state);
  }
}

Error not_restored(const JournalEntry& entry, const std::string& why) {
  return {ErrorKind::not_restored,
          fmt::format("{}: the power limit could not be put back to {:g} W: {}; halfwatt "
                      "restore tries again",
                      entry.card, entry.found.value(), why)};
}

Result<void> write_found(LimitControl& control,
                         const Journal& journal,
                         const JournalEntry& entry,
                         Watts before,
                         const PutBackRules& rules) {
  JournalEntry next = entry;
  next.previous_intent = before;  // which may be an older intent, where a write came to nothing
  next.intent = entry.found;
  next.read_back = true;  // it was read when it was found, so that no step rounds it
  // On a full disk this fails and need not be there: the old entry leads back to `found` too.
  (void)journal.write(next);
  enter(rules, GuardianState::restore_journalled);
  const Result<void> written = control.write(entry.found);
  enter(rules, GuardianState::restore_written);
  const Result<Watts> now = control.read();
  // What counts is the limit in force, whatever the write said.
  if (now && same_limit(*now, entry.found)) {
    return {};
  }
  return not_restored(entry, !written ? written.error().message
                             : now    ? fmt::format("the card says {:g} W", now->value())
                                      : now.error().message);
}

std::string sentence(RestoreAction action, const JournalEntry& entry, Watts before) {
  switch (action) {
    case RestoreAction::put_back:
      return fmt::format("{}: put back to {:g} W from {:g} W", entry.card, entry.found.value(),
                         before.value());
    case RestoreAction::done:
      return fmt::format("{}: stands at {:g} W, as it was found", entry.card, before.value());
    case RestoreAction::forgotten:
      return fmt::format(
          "{}: stands at {:g} W; the machine or its driver started anew since "
          "{:g} W was found, which dropped what halfwatt had set",
          entry.card, before.value(), entry.found.value());
    case RestoreAction::foreign:
      break;
  }
  return fmt::format(
      "{}: stands at {:g} W, which somebody else set; {:g} W was found: left "
      "alone; halfwatt restore --force writes {:g} W",
      entry.card, before.value(), entry.found.value(), entry.found.value());
}

}  // namespace

Result<PutBack> put_back(LimitControl& control,
                         const Journal& journal,
                         const JournalEntry& entry,
                         const PutBackRules& rules) {
  enter(rules, GuardianState::restoring);
  const bool same_boot = rules.now.boot == entry.load.boot;
  for (const int group : entry.stopped_groups) {
    if (group > 1 && same_boot) {
      ::kill(-group, SIGCONT);
    }
  }
  const Result<Watts> before = control.read();
  if (!before) {
    return not_restored(entry, before.error().message);
  }
  RestoreAction action = restore_action(entry, rules.now, *before);
  if (action == RestoreAction::foreign && rules.force) {
    action = RestoreAction::put_back;
  }
  if (action == RestoreAction::put_back) {
    if (const Result<void> done = write_found(control, journal, entry, *before, rules); !done) {
      return done.error();
    }
  }
  if (action != RestoreAction::foreign) {
    // An entry that stays is harmless: the next to read it finds the found limit in force.
    (void)journal.close(entry.card);
  }
  enter(rules, GuardianState::restored);
  return PutBack{action, sentence(action, entry, *before)};
}

}  // namespace halfwatt

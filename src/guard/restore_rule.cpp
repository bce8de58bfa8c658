#include "guard/restore_rule.h"

#include "guard/limit_control.h"

namespace halfwatt {

RestoreAction restore_action(const JournalEntry& entry, const LoadId& now, Watts in_force) {
  if (same_limit(in_force, entry.found)) {
    return RestoreAction::done;
  }
  if (now != entry.load) {
    return RestoreAction::forgotten;
  }
  const auto is_in_force = [in_force](const std::optional<Watts>& limit) {
    return limit && same_limit(*limit, in_force);
  };
  if (!entry.read_back && entry.intent && may_be_rounded(*entry.intent, in_force)) {
    return RestoreAction::put_back;
  }
  return is_in_force(entry.intent) || is_in_force(entry.previous_intent)
             ? RestoreAction::put_back
             : RestoreAction::foreign;
}

}  // namespace halfwatt

#include "guard/held_card.h"

#include <fmt/format.h>

namespace halfwatt {
namespace {

// Longer than a guardian takes that is just putting back, its parent having died.
constexpr Seconds kPatience{3};

}  // namespace

Result<HeldCard> HeldCard::hold(const std::string& card,
                                std::unique_ptr<LimitControl> control,
                                const HoldTerms& terms,
                                std::vector<std::string>& remarks) {
  Result<CardLock> lock = CardLock::take(terms.folders.locks, card, terms.holder, kPatience);
  if (!lock) {
    return lock.error();
  }
  HeldCard held(std::move(control), std::move(*lock), terms);
  held.enter(GuardianState::locked);
  if (const Result<void> recovered = held.recover(card, terms, remarks); !recovered) {
    return recovered.error();
  }
  held.enter(GuardianState::recovered);
  const Result<LimitState> found = held.control_->look();
  if (!found) {
    return found.error();
  }
  const Result<LimitBounds> bounds = limit_bounds(*found, terms.max_limit, card);
  if (!bounds) {
    return bounds.error();
  }
  if (bounds->raised) {
    remarks.push_back(raising_sentence(*found, *bounds, card));
  }
  held.found_ = *found;
  held.bounds_ = *bounds;
  held.entry_ =
      JournalEntry{card, terms.load, found->requested, found->persistence, {}, {}, {}};
  if (const Result<void> proven = held.prove(); !proven) {
    return held.undo(proven.error());
  }
  return held;
}

Result<void> HeldCard::recover(const std::string& card,
                               const HoldTerms& terms,
                               std::vector<std::string>& remarks) {
  const Result<std::optional<JournalEntry>> left = journal_.read(card);
  if (!left) {
    return left.error();
  }
  if (!*left) {
    return {};
  }
  const Result<PutBack> back =
      put_back(*control_, journal_, **left, PutBackRules{terms.load, false, terms.at});
  if (!back) {
    return back.error();
  }
  remarks.push_back("an earlier halfwatt did not end well; " + back->sentence);
  return {};
}

// Only a write shows whether this card takes one from us: root in a container, a laptop and a
// virtual card may refuse. The value is the one in force, and it is journalled like any other.
Result<void> HeldCard::prove() {
  const Result<Watts> proven = write(entry_.found, entry_.found);
  if (!proven) {
    return proven.error();
  }
  if (!same_limit(*proven, entry_.found)) {
    return Error{
        ErrorKind::device,
        fmt::format("{}: was set to the {:g} W that were found and said {:g} W: it rounds, or "
                    "something else sets it; use --measure-only",
                    entry_.card, entry_.found.value(), proven->value())};
  }
  return {};
}

// What a write that proved nothing may have changed all the same. The entry goes only when the
// found limit is in force.
Error HeldCard::undo(Error why) {
  const Result<PutBack> back = restore();
  if (!back) {
    return entry_.intent ? Error{back.error().kind, why.message + "; " + back.error().message}
                         : why;
  }
  if (back->action == RestoreAction::foreign) {
    why.message += "; " + back->sentence;
  }
  return why;
}

Result<Watts> HeldCard::write(Watts before, Watts limit) {
  JournalEntry next = entry_;
  // What is in force, not what was asked for last: that write may have come to nothing.
  next.previous_intent = before;
  next.intent = limit;
  next.read_back = false;
  if (const Result<void> noted = journal_.write(next); !noted) {
    return noted.error();
  }
  entry_ = next;
  enter(GuardianState::journalled);
  if (const Result<void> written = control_->write(limit); !written) {
    return written.error();
  }
  enter(GuardianState::written);
  Result<Watts> in_force = control_->read();
  if (in_force) {
    if (const Result<void> noted = note_read_back(limit, *in_force); !noted) {
      return noted.error();
    }
  }
  enter(GuardianState::read_back);
  return in_force;
}

Result<void> HeldCard::note_read_back(Watts limit, Watts in_force) {
  // Known from here on, whether the disk takes it or not: else what was rounded would be taken
  // for a stranger's.
  entry_.read_back = true;
  if (!same_limit(in_force, limit) && may_be_rounded(limit, in_force) &&
      !same_limit(in_force, *entry_.previous_intent)) {
    entry_.previous_intent = limit;
    entry_.intent = in_force;
  }
  return journal_.write(entry_);
}

Result<Watts> HeldCard::set(Watts limit) {
  // Asked the way that is false for NaN.
  if (!(limit >= bounds_.min && limit <= bounds_.top) && !same_limit(limit, entry_.found)) {
    return bad_input(
        fmt::format("{}: {:g} W lies outside {:g}-{:g} W; --max-limit names what "
                    "may be written above the limit found",
                    entry_.card, limit.value(), bounds_.min.value(), bounds_.top.value()));
  }
  const Result<Watts> before = control_->read();
  if (!before) {
    return before.error();
  }
  if (restore_action(entry_, entry_.load, *before) == RestoreAction::foreign) {
    return Error{ErrorKind::device,
                 fmt::format("{}: stands at {:g} W, which somebody else set; halfwatt had set "
                             "{:g} W and leaves it alone",
                             entry_.card, before->value(), entry_.intent->value())};
  }
  return write(*before, limit);
}

Result<void> HeldCard::remember_group(int group) {
  JournalEntry next = entry_;
  next.stopped_groups.push_back(group);
  Result<void> noted = journal_.write(next);
  if (noted) {
    entry_ = std::move(next);
  }
  return noted;
}

Result<PutBack> HeldCard::restore() {
  // The driver may have been loaded anew under our feet, which is nobody's doing.
  return put_back(*control_, journal_, entry_, PutBackRules{current_load(), false, at_});
}

void HeldCard::enter(GuardianState state) const {
  if (at_) {
    at_(state);
  }
}

}  // namespace halfwatt

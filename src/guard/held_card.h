#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guard/card_lock.h"
#include "guard/folders.h"
#include "guard/guardian_state.h"
#include "guard/journal.h"
#include "guard/limit_bounds.h"
#include "guard/put_back.h"

namespace halfwatt {

/// What a card is held with.
struct HoldTerms {
  GuardFolders folders;
  Holder holder;                   ///< for whom
  LoadId load;                     ///< of the machine, now
  std::optional<Watts> max_limit;  ///< what --max-limit says
  StateHook at;
};

/// One card in a guardian's hands: locked, journalled before every write, put back.
class HeldCard {
 public:
  /// Locks the card, puts back what an earlier halfwatt left, reads what is there, and proves
  /// by writing the limit that is in force that it could be put back. `remarks` gets what the
  /// user should know. Errors: held by another halfwatt, no permission, MIG, no journal.
  static Result<HeldCard> hold(const std::string& card,
                               std::unique_ptr<LimitControl> control,
                               const HoldTerms& terms,
                               std::vector<std::string>& remarks);

  /// What was found.
  const LimitState& found() const { return found_; }
  /// Journals the intent, writes it and reads it back: what is in force then. Errors: out of
  /// bounds, not journalled, refused by the card, or changed by somebody else meanwhile.
  Result<Watts> set(Watts limit);
  /// Remembers in the journal that `group` may be stopped.
  Result<void> remember_group(int group);
  /// Puts the found limit back by the rule of the journal.
  Result<PutBack> restore();

 private:
  HeldCard(std::unique_ptr<LimitControl> control, CardLock lock, const HoldTerms& terms)
      : control_(std::move(control)),
        lock_(std::move(lock)),
        journal_(terms.folders.state),
        at_(terms.at) {}
  Result<void> recover(const std::string& card,
                       const HoldTerms& terms,
                       std::vector<std::string>& remarks);
  Result<void> prove();
  Error undo(Error why);
  Result<Watts> write(Watts before, Watts limit);
  Result<void> note_read_back(Watts limit, Watts in_force);
  void enter(GuardianState state) const;

  std::unique_ptr<LimitControl> control_;
  CardLock lock_;
  Journal journal_;
  StateHook at_;
  JournalEntry entry_;
  LimitState found_;
  LimitBounds bounds_;
};

}  // namespace halfwatt

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/guardian_process.h"
#include "guard/limit_control.h"
#include "guard/wire.h"

namespace halfwatt {

/// A card whose limit is to be changed for good.
struct LastingLimit {
  std::string card;
  std::optional<Watts> limit;  ///< absent: the one that the vendor ships
};

/// What became of it.
struct LimitChange {
  std::string card;
  LimitState before;
  Watts now;
};

/// Sets limits that stay, for the process `by`. Each card is locked, checked against its
/// range, written and read back, and an entry of the journal that was left for it is closed,
/// since this limit is now the one to find. If one card refuses, those before it get back what
/// they had, unless somebody else set them meanwhile. Errors: a halfwatt holds the card, MIG,
/// out of range, no permission, not taken.
Result<std::vector<LimitChange>> set_lasting(const std::vector<LastingLimit>& limits,
                                             const std::optional<std::string>& state_dir,
                                             pid_t by);

/// The same limit for every card by `guardian`, which alone has the privilege. Errors: as
/// set_lasting(), or it died.
Result<std::vector<LimitChange>> ask_for_lasting(const GuardianProcess& guardian,
                                                 const std::vector<LastingLimit>& limits,
                                                 const std::optional<std::string>& state_dir);

/// What a guardian answers when it is asked for that.
Message answer_lasting(const Message& request, pid_t by);

}  // namespace halfwatt

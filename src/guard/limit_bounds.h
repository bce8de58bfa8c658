#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// The limits that halfwatt may write to a card.
struct LimitBounds {
  Watts min;
  Watts top;            ///< of every search
  bool raised = false;  ///< top lies above what was found, since --max-limit says so
  bool operator==(const LimitBounds&) const = default;
};

/// The limit ceiling: the found requested limit, lowered to the enforced one where that is
/// less. Only `max_limit` goes above. `card` names the card in errors: MIG is on, the card
/// tells no range, or `max_limit` lies outside it.
Result<LimitBounds> limit_bounds(const LimitState& found,
                                 const std::optional<Watts>& max_limit,
                                 const std::string& card);

/// Why no limit is written to a card whose slices belong to several.
Error sliced_error(const std::string& card);

/// What to say first where `bounds` raise a limit: "...: --max-limit raises ...".
std::string raising_sentence(const LimitState& found,
                             const LimitBounds& bounds,
                             const std::string& card);

}  // namespace halfwatt

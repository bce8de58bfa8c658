#include "guard/limit_bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt {

Error sliced_error(const std::string& card) {
  return {ErrorKind::device,
          fmt::format("{}: MIG is on, and a power limit would hit every slice of the card; "
                      "turn MIG off or use --measure-only",
                      card)};
}

Result<LimitBounds> limit_bounds(const LimitState& found,
                                 const std::optional<Watts>& max_limit,
                                 const std::string& card) {
  if (found.sliced) {
    return sliced_error(card);
  }
  if (!found.range) {
    return Error{ErrorKind::device,
                 fmt::format("{}: the card does not tell which limits it takes, and none is "
                             "guessed; use --measure-only",
                             card)};
  }
  const LimitRange& range = *found.range;
  LimitBounds bounds{range.min, std::min(found.requested, range.max)};
  if (found.enforced) {
    bounds.top = std::min(bounds.top, *found.enforced);
  }
  if (max_limit) {
    if (!(*max_limit >= range.min && *max_limit <= range.max)) {
      return bad_input(fmt::format("--max-limit {:g}: {} takes {:g}-{:g} W", max_limit->value(),
                                   card, range.min.value(), range.max.value()));
    }
    bounds.raised = *max_limit > bounds.top;
    bounds.top = *max_limit;
  }
  if (bounds.top < bounds.min) {
    return Error{ErrorKind::device,
                 fmt::format("{}: {:g} W are in force, below the {:g} W that a limit may be: "
                             "something else caps the card; use --measure-only",
                             card, bounds.top.value(), bounds.min.value())};
  }
  return bounds;
}

std::string raising_sentence(const LimitState& found,
                             const LimitBounds& bounds,
                             const std::string& card) {
  const Watts before = std::min(found.requested, found.enforced.value_or(found.requested));
  return fmt::format("{}: --max-limit lets the limit rise to {:g} W, above the {:g} W found",
                     card, bounds.top.value(), before.value());
}

}  // namespace halfwatt

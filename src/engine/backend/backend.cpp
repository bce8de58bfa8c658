#include "engine/backend/backend.h"

namespace halfwatt {

std::byte* address(const Place& place, const Bound& bound) {
  switch (place.space) {
    case Place::Space::arena:
      return bound.arena + place.offset;
    case Place::Space::state:
      return bound.states[static_cast<std::size_t>(place.index)];
    case Place::Space::input:
      break;
  }
  return bound.inputs[static_cast<std::size_t>(place.index)];
}

}  // namespace halfwatt

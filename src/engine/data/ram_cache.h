#pragma once

#include <cstdint>
#include <memory>

#include "engine/data/source.h"

namespace halfwatt {

/// The images of `source`, which must outlive it, each decoded when it is first read and then
/// kept; images that cannot be read are tried again. It never takes more than `room` bytes
/// (available_memory() less what the network needs): where images turn out larger than was
/// reckoned from some of them, the last ones are decoded anew each time.
/// Errors (bad_input): the images need more than `room`, by that reckoning.
Result<std::unique_ptr<Source>> cached_in_ram(const Source& source, std::int64_t room);

}  // namespace halfwatt

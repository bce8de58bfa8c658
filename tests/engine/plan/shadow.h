#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace halfwatt {

/// Which of the devices that may go on does so next: an index into their list, which is never
/// empty.
using Interleaving = std::function<std::size_t(const std::vector<int>& ready)>;

/// The first device that can.
std::size_t in_turn(const std::vector<int>& ready);

/// Runs `plan` on memory whose every byte knows which value, and which byte of it, was written
/// there last; an arena holds nothing at first, and a workspace leaves nothing behind. Devices
/// take their steps in the order that `next` chooses among those whose waits are over. Returns
/// the first thing that is wrong: an input, result or state that is not all there, a place that
/// does not fit, a kernel that would write what it still reads; nullopt if nothing is.
std::optional<std::string> first_fault(const Plan& plan, const Interleaving& next = in_turn);

}  // namespace halfwatt

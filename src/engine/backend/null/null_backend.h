#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace halfwatt {

/// A device that computes nothing: plans for any target run on it, step by step and with all
/// their waits, on a machine that has no such device. Its memory has addresses and no access,
/// so that whoever touches it other than by upload() and download() is caught at once, as a
/// GPU would catch him. What is uploaded is forgotten; what is downloaded is all ones, which is
/// NaN in every float. Allocations beyond the target's memory fail as on the device.
std::unique_ptr<Backend> open_null(Target target);

}  // namespace halfwatt

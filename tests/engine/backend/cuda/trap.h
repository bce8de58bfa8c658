#pragma once

namespace halfwatt {

/// Starts a kernel that the device stops: the process has lost the device from then on.
void spring_trap();

}  // namespace halfwatt

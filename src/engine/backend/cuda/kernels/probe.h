#pragma once

namespace halfwatt::cuda {

/// Whether this program has machine code, or code that the driver can translate, for a device.
bool has_code_for_this_device(int device);

}  // namespace halfwatt::cuda

#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

namespace halfwatt::cuda {

/// What an error of the runtime means to a user and what helps, in one line without an end.
std::string meaning(cudaError_t error);

/// Throws Failure (device), "what: its meaning", unless all went well.
void check(cudaError_t error, std::string_view what);

}  // namespace halfwatt::cuda

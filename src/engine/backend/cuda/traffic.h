#pragma once

#include <cstddef>
#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/call.h"

namespace halfwatt::cuda {

/// A feed whose values cross to `beside`, as many bytes of the device, on a stream of their own
/// while the machine's stream computes, which then moves them to `to`. Memory of the host that
/// both sides see holds two of them. Throws Failure if there is too little.
std::unique_ptr<Feed> feed(const Machine& machine,
                           std::byte* to,
                           Buffer beside,
                           std::size_t bytes);

/// Snapshots in memory of the host that both sides see: a ring of Snapshots::kMost. Throws
/// Failure if there is too little.
std::unique_ptr<Snapshots> snapshots(const Machine& machine,
                                     const std::byte* from,
                                     std::size_t bytes);

}  // namespace halfwatt::cuda

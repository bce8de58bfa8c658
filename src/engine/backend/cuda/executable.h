#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/call.h"

namespace halfwatt::cuda {

/// The steps of one device of `plan` as one graph, captured now and launched whole. `plan`,
/// what `bound` names and `machine` outlive it. Throws Failure with the name of the step that
/// cannot be enqueued.
std::unique_ptr<Executable> capture(const Plan& plan,
                                    int device,
                                    const Bound& bound,
                                    const Machine& machine);

}  // namespace halfwatt::cuda

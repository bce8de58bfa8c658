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

/// The same steps, each enqueued and waited for when it is its turn. `plan` outlives it.
std::unique_ptr<Executable> step_by_step(const Plan& plan,
                                         int device,
                                         const Bound& bound,
                                         const Machine& machine);

}  // namespace halfwatt::cuda

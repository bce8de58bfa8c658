#pragma once

#include <span>

#include "engine/backend/backend.h"
#include "engine/passes/precision.h"
#include "workloads/op_rates.h"

namespace halfwatt {

/// One measured node: its work, and how long it took.
struct TimedNode {
  NodeWork work;
  double seconds = 0;
};

/// The parts, none negative, that fit `nodes` (not empty) best: least squares of the times,
/// each weighted by its inverse, so that neither the many short nor the few long ones decide
/// alone.
OpRate fitted_rate(std::span<const TimedNode> nodes);

/// How fast `backend` does, in `precision`, all that training a ViT needs: a few small ones of
/// different widths are run, and every node is timed. Takes some seconds. Errors: a node that
/// the device refuses, too little memory.
Result<OpRates> probe(Backend& backend, const Precision& precision);

}  // namespace halfwatt

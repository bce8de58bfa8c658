#pragma once

#include <map>
#include <string>

#include "engine/plan/target.h"

namespace halfwatt {

/// What a node has to do: FLOPs of a product, and of all else bytes read and written; and the
/// rows of its first output, since narrow rows cost more than their bytes.
struct NodeWork {
  double amount = 0;
  double rows = 0;
};

/// How long an op takes: the sum of three parts.
struct OpRate {
  Seconds launch;
  Seconds of_row;
  Seconds of_unit;  ///< of one FLOP or byte
  bool operator==(const OpRate&) const = default;

  Seconds time(const NodeWork& work) const {
    return launch + of_row * work.rows + of_unit * work.amount;
  }
};

/// How fast a machine does what plans are made of, by op and dtype: "matmul bf16". Those of
/// several precisions may stand side by side.
using OpRates = std::map<std::string, OpRate>;

/// The row of OpRates that tells of a node.
std::string rate_name(const Graph& graph, int node);
NodeWork work_of(const Graph& graph, int node);

/// `target` with these rates: FLOPs by dtype, bytes, launch and the times of nodes.
Target with_rates(Target target, const OpRates& rates);

}  // namespace halfwatt

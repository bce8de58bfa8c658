#pragma once

#include <map>
#include <string>

#include "engine/plan/target.h"

namespace halfwatt {

/// What a node has to do: FLOPs of products; bytes read and written, which a product has to
/// fetch and, where its format is emulated, to convert; and the rows of its first output, since
/// narrow rows cost more than their bytes.
struct NodeWork {
  double flops = 0;
  double bytes = 0;
  double rows = 0;
};

/// How long an op takes: the sum of four parts.
struct OpRate {
  Seconds launch;
  Seconds of_row;
  Seconds of_flop;
  Seconds of_byte;
  bool operator==(const OpRate&) const = default;

  Seconds time(const NodeWork& work) const {
    return launch + of_row * work.rows + of_flop * work.flops + of_byte * work.bytes;
  }
};

/// How fast a machine does what plans are made of, by op and dtypes: "matmul bf16 f32>bf16".
/// Those of several precisions may stand side by side.
using OpRates = std::map<std::string, OpRate>;

/// The row of OpRates that tells of a node: its op, what operands are computed in, the other
/// dtypes that come in and, behind `>`, those that go out. Every pair has its own conversions.
std::string rate_name(const Graph& graph, int node);
NodeWork work_of(const Graph& graph, int node);

/// `target` with these rates: FLOPs by dtype, bytes, launch, link and the times of nodes; as it
/// is if there are none.
Target with_rates(Target target, const OpRates& rates);

}  // namespace halfwatt

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/device_id.h"
#include "base/units.h"
#include "engine/graph/graph.h"

namespace halfwatt {

/// Whether a device computes a node, and how.
struct Support {
  enum class Kind {
    native,
    emulated,  ///< stored and rounded in the format, computed in fp32: right, not fast
    refused,
  };
  Kind kind = Kind::native;
  std::string reason;  ///< where refused
};

/// What a device can do, as planning needs to know it. A backend hands one out; tests make them
/// up.
struct Target {
  DeviceId id;
  std::string name;
  std::optional<Bytes> memory;    ///< nullopt: unknown
  std::map<DType, double> flops;  ///< a second, of products, by the dtype of the operands
  double bytes_per_second = 0;    ///< of its memory; 0: nobody measured its rates
  Seconds launch;                 ///< that every step costs at least
  double link = 0;                ///< bytes a second to and from other devices
  Seconds latency;                ///< of the link
  /// Scratch memory that a node needs while it runs, in bytes.
  std::function<std::size_t(const Graph&, int node)> workspace;
  std::function<Support(const Graph&, int node)> support;
  /// How long a node takes, where that is known better than by the rates above: it was
  /// measured.
  std::function<std::optional<Seconds>(const Graph&, int node)> time;
  /// How weights [features, width] that are only loaded best lie for a linear node; none: row
  /// by row. Empty: always so.
  std::function<std::optional<Panels>(DType, const Shape& weights)> panels;
  /// Whether values of inputs are brought to it while it computes with those before, for which
  /// it needs their bytes twice.
  bool feeds_ahead = false;
  std::string source;  ///< where the rates come from: "data sheet"
  /// What the last bits of its results depend on, by what it is: threads, isa, libraries.
  std::map<std::string, std::string> arithmetic;
};

/// Whether times on `target` can be predicted.
inline bool has_rates(const Target& target) {
  return target.time || (!target.flops.empty() && target.bytes_per_second > 0);
}
/// What the operands of a product are rounded to: the dtype that its rate depends on.
DType operands_of(const Graph& graph, const Node& node);

/// How long a node takes on `target`, as it was measured or else by its rates: the longer of
/// computing and moving. Nothing is known of a dtype that the target has no rate for: the
/// slowest one is taken.
Seconds predicted_time(const Graph& graph, int node, const Target& target);

}  // namespace halfwatt

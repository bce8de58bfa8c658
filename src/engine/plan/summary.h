#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/step_plan.h"

namespace halfwatt {

/// What one layer ("blocks.3", "head") has a share of.
struct LayerSummary {
  std::string layer;
  Bytes states;  ///< parameters, copies, moments, accumulators, averages
  Bytes kept;    ///< values of its forward that a backward uses
  double flops = 0;
  Bytes moved;                  ///< to and from the memory of its device
  std::optional<Seconds> busy;  ///< nullopt: a device's rates are unknown
};

/// A product with a matrix whose rows are no multiples of 16 bytes: its kernels read and write
/// by the element, and may not use tensor cores.
struct UnalignedProduct {
  std::string layer;
  Phase phase = Phase::forward;
  std::string extents;  ///< "160x768 . 768x1"
  double padding = 0;   ///< FLOPs that padded extents have more, as a share
  /// What padding gains in a step at most: the time at fp32's rate less that of the padded
  /// product. nullopt: a rate is unknown, or was measured of just such products.
  std::optional<Seconds> gain;
};

struct DeviceSummary {
  std::string name;
  std::string source;           ///< of its rates
  std::optional<Bytes> memory;  ///< nullopt: unknown
  Footprint footprint;
  std::optional<Seconds> busy;
  /// Whether it computes some format that it does not have: right, but no measure of its speed.
  /// nullopt: it does not say.
  std::optional<bool> emulated;
};

/// What is known of a step before it runs.
struct PlanSummary {
  double flops = 0;
  Bytes moved;    ///< every input read and every output written once
  Bytes between;  ///< of those, from one device to another
  std::optional<Seconds> time;
  std::vector<DeviceSummary> devices;
  std::vector<LayerSummary> layers;  ///< in the order of the model
  std::vector<UnalignedProduct> unaligned;

  Bytes peak() const;  ///< of all devices together
};

PlanSummary summarize(const StepPlan& step, std::span<const Target> targets);

}  // namespace halfwatt

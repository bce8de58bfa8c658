#pragma once

#include <string>

#include "engine/models/vit.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"
#include "engine/plan/target.h"

namespace halfwatt {

/// A device that computes everything at once and knows no workspace; tests change what they are
/// about.
inline Target made_up(std::string name) {
  Target target;
  target.name = std::move(name);
  target.memory = Bytes(1e12);
  target.flops = {{DType::f32, 50e12}, {DType::f16, 600e12}, {DType::bf16, 600e12}};
  target.bytes_per_second = 4e12;
  target.launch = Seconds(2e-6);
  target.link = 50e9;
  target.latency = Seconds(10e-6);
  return target;
}

/// The whole step of a model in a mode.
inline Graph step_of(const VitConfig& config, std::int64_t batch, std::string_view mode) {
  const Precision row = *precision_named(mode);
  const auto model = with_precision(vit(config, batch, ModelMode::train), row, {});
  return with_update(with_gradients(*model, row, 1), row, {});
}

}  // namespace halfwatt

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/ops/builder.h"

namespace halfwatt {

/// What models are made of. Weights are states with timm's names; everything is f32 here, and
/// the precision pass says otherwise.
class Layers {
 public:
  /// `builder` outlives it.
  explicit Layers(Builder& builder) : build_(&builder) {}

  /// The parameter `name`, which is to be of `shape`.
  Value parameter(const std::string& name, Shape shape);
  /// x: [..., K] to [..., features], with weights `path.weight` and `path.bias`.
  Value linear(const std::string& path, Value x, std::int64_t features);
  Value layer_norm(const std::string& path, Value x, double eps);
  /// x: [B, N, D] to the same.
  Value self_attention(const std::string& path, Value x, std::int64_t heads);
  /// x: [B, N, D] over `hidden` features to the same.
  Value mlp(const std::string& path, Value x, std::int64_t hidden);
  /// x with each element, or each sample, left out at `rate`; `random` is the key of the step.
  Value dropout(const std::string& path, Value x, double rate, std::optional<Value> random);
  Value drop_path(const std::string& path, Value x, double rate, std::optional<Value> random);

 private:
  Builder* build_;
};

}  // namespace halfwatt

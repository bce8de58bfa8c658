#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/models/vit.h"
#include "engine/passes/precision.h"
#include "engine/passes/update.h"

namespace halfwatt {

/// All that a training follows from, but for the data.
struct TrainRecipe {
  VitConfig model;
  Precision precision;
  std::vector<PrecisionOverride> overrides;
  Optimizer optimizer;
  std::int64_t batch = 32;  ///< images at once
  int micro_batches = 1;    ///< of that many, which make a step
  bool recompute = false;   ///< of blocks, for less memory
  double smoothing = 0;     ///< of labels
  std::uint64_t seed = 1;
  double layer_decay = 1;                     ///< of the rate, from each layer to the one below
  std::vector<std::string> freeze = {};       ///< patterns of parameters that do not learn
  std::vector<std::string> class_names = {};  ///< by label, where the data has names
  /// What the device normalises pictures by, which come as bytes; nullopt: they come as
  /// numbers.
  std::optional<Normalisation> normalisation = {};

  /// Of images as the model takes them.
  DType image_dtype() const { return normalisation ? DType::u8 : DType::f32; }
};

/// The recipe as JSON, without what changes no bit of the result (recompute, who
/// normalises pictures, and the total of a constant schedule). What is not UTF-8 in a name
/// becomes U+FFFD.
std::string recipe_json(const TrainRecipe& recipe);

/// The first field in which two such texts differ, in words: "model.depth is 2 in OLD, 4 in
/// NEW"; empty if they are the same. `old_name` and `new_name` say what they are of.
std::string recipe_difference(const std::string& old_json,
                              const std::string& new_json,
                              const std::string& old_name,
                              const std::string& new_name);

}  // namespace halfwatt

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/exec/session.h"
#include "engine/models/vit.h"
#include "engine/passes/precision.h"

namespace halfwatt {

/// All that an inference follows from, but for weights and images.
struct InferRecipe {
  VitConfig model;
  Precision precision;
  std::vector<PrecisionOverride> overrides;
  std::int64_t batch = 8;                ///< images at once
  std::optional<Fp8Scales> scales = {};  ///< of fp8; nullopt: each operand's own
  bool calibrates = false;  ///< for largest_magnitudes() (calibration.h), of operands of fp8
  /// What the device normalises pictures by, which come as bytes; nullopt: they come as
  /// numbers.
  std::optional<Normalisation> normalisation = {};
};

/// The plan of one batch, its weights lying as the device reads them best. Errors: as
/// Inference::open(), but for memory.
Result<Plan> inference_plan(const InferRecipe& recipe, const Target& target);

/// A model on one device, from images to logits.
class Inference {
 public:
  /// `backend` outlives it. The parameters are 0 until somebody sets them. Errors (bad_input):
  /// a pattern that matches no layer, an operand without a scale where there are some, a node
  /// that the device refuses, more memory than the device has (with the batch that fits);
  /// (device) too little memory left.
  static Result<std::unique_ptr<Inference>> open(const InferRecipe& recipe, Backend& backend);

  /// Where its parameters are, for load_weights() and draw_weights().
  States& states() { return states_; }
  const Plan& plan() const { return session_->plan(0); }
  /// Whether some step computes a format that the device does not have: right, but no measure
  /// of its speed.
  bool is_emulated() const;

  /// The logits, [N, classes] in the dtype of the model's output, of images that
  /// check_images() (models/images.h) passes, or of bytes, u8 of that shape, if the recipe says
  /// how to normalise them. Any N: always a whole batch is computed, the last
  /// image repeated where there are no more. An image has the same logits to the bit beside any
  /// others and wherever it stands, except in fp8 without InferRecipe::scales, whose scale is
  /// one for the batch. Errors: the device is lost.
  Result<Tensor> logits(const TensorView& images);

 private:
  explicit Inference(Backend& backend) : backend_(&backend) {}

  Backend* backend_;
  States states_;
  std::unique_ptr<Session> session_;
};

}  // namespace halfwatt

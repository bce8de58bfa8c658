#pragma once

#include <span>

#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/step_functions.h"

// What stands at the end of a step: checks of the gradients, optimizers, scales. All scalars
// are read and written on the device, so that nothing waits for the host to look at them.

namespace halfwatt::cuda {

/// Elements, and how many.
struct Extent {
  Elements elements;
  Index count = 0;
};

/// Whether any element of the gradients is not finite (a bool), the sum of their squares, and
/// the number of the first gradient that is not finite, -1 if all are (an i64).
void check_gradients(Stream stream,
                     std::span<const Extent> gradients,
                     std::byte* found,
                     Elements squares,
                     std::int64_t* first_bad,
                     std::byte* workspace);
/// Bytes of its workspace.
std::size_t check_gradients_bytes(std::span<const Extent> gradients);

/// What gradients are multiplied with, 1 / scale, clipped to a norm of `most` unless that is 0;
/// and their norm.
void gradient_factor(Stream stream,
                     Elements squares,
                     Elements scale,
                     double most,
                     Elements factor,
                     Elements norm);

/// The learning rate behind `applied` steps.
void learning_rate(Stream stream,
                   const std::int64_t* applied,
                   const Schedule& schedule,
                   Elements rate);

/// A parameter of an update: itself and its moments before and after, which may be the same
/// memory, its gradient, and where its tally goes (two i64: not finite, unchanged).
struct UpdatedParameter {
  Index count = 0;
  const std::byte* before[3] = {};
  std::byte* after[3] = {};
  const std::byte* gradient = nullptr;
  std::int64_t* tally = nullptr;
};

/// What all of them share.
struct Update {
  DType parameter, moment, gradient;  ///< how they are stored
  DType math;                         ///< f32, or what every operation is rounded to
  Elements factor, rate;
  const std::int64_t* applied;
  const std::uint8_t* skip;
  bool rounds_stochastically = false;
  RandomSource random = {};
  double beta1 = 0, beta2 = 0, eps = 0, decay = 0, momentum = 0;
};

/// torch.optim.AdamW.
void adamw(Stream stream, const Update& update, std::span<const UpdatedParameter> parameters);
/// torch.optim.SGD; `before[1]` is the momentum.
void sgd(Stream stream, const Update& update, std::span<const UpdatedParameter> parameters);

/// average = decay * average + (1 - decay) * parameter, unless skipped.
void ema(Stream stream,
         Elements before,
         Elements parameter,
         const std::uint8_t* skip,
         double decay,
         Elements after,
         Index count);

/// after = before + 1, unless skipped.
void advance(Stream stream,
             const std::int64_t* before,
             const std::uint8_t* skip,
             std::int64_t* after);

/// torch.amp.GradScaler.update().
void update_scale(Stream stream,
                  Elements before,
                  const std::int32_t* age_before,
                  const std::uint8_t* skip,
                  const ScaleRule& rule,
                  Elements after,
                  std::int32_t* age_after);

}  // namespace halfwatt::cuda

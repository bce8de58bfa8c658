#include "engine/backend/cuda/kernels/rows.h"

#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/losses.h"
#include "engine/backend/cuda/planted.h"

namespace halfwatt::cuda {
namespace {

/// Of a norm whose x is input 0, and whose gamma and beta are inputs `gamma` and behind it.
LayerNorm norm_of(const Call& call, std::size_t gamma, std::size_t y) {
  const Shape& shape = call.input(0).type.shape;
  LayerNorm job{};
  job.rows = shape.rows();
  job.width = shape.last(0);
  job.x = call.in(0);
  job.gamma = call.in(gamma);
  job.beta = call.in(gamma + 1);
  job.epsilon = static_cast<float>(call.attributes().number("eps"));
  job.y = call.out(y);
  job.mean = call.out(y + 1);
  job.rstd = call.out(y + 2);
  return job;
}

/// Of a loss whose logits are input `logits`, with targets and the count of valid rows behind.
Loss loss_of(const Call& call, std::size_t logits) {
  const Shape& shape = call.input(logits).type.shape;
  Loss job{};
  job.rows = shape[0];
  job.classes = shape[1];
  job.logits = call.in(logits);
  job.targets = call.input(logits + 1).data;
  job.shares = call.in(logits + 1);
  job.valid = call.in_as<std::int64_t>(logits + 2);
  return job;
}

float smoothing_of(const Call& call) {
  const bool has = call.attributes().has("smoothing") && !planted(Fault::no_smoothing);
  return has ? static_cast<float>(call.attributes().number("smoothing")) : 0;
}

template <void (*compute)(Stream, const Loss&)>
void run_loss(Call& call) {
  // The mean is that of the losses before they are stored.
  const Index rows = call.input(0).type.shape[0];
  const Elements losses = call.scratch(DType::f32, rows);
  if (!call.is_dry()) {
    Loss job = loss_of(call, 0);
    job.smoothing = smoothing_of(call);
    job.mean = call.out(0);
    job.losses = losses;
    compute(call.stream(), job);
    convert(call.stream(), losses, call.out(1), rows);
  }
}

template <void (*compute)(Stream, const Loss&)>
void run_loss_gradient(Call& call) {
  if (!call.is_dry()) {
    Loss job = loss_of(call, 1);
    job.smoothing = smoothing_of(call);
    job.factor = call.in(0);
    job.gradient = call.out(0);
    compute(call.stream(), job);
  }
}

}  // namespace

void run_layer_norm(Call& call) {
  if (!call.is_dry()) {
    layer_norm(call.stream(), norm_of(call, 1, 0));
  }
}

void run_add_layer_norm(Call& call) {
  const DType sum = call.output(0).type.dtype;
  if (call.is_dry()) {
    return;
  }
  LayerNorm job = norm_of(call, 2, 1);
  if (call.input(0).type.dtype == sum) {
    job.residual = call.in(1);
    job.sum = call.out(0);
  } else {  // the sum is normed as it is stored
    add(call.stream(), call.in(0), call.in(1), call.out(0), call.count(0), call.count(1));
    job.x = call.out(0);
  }
  layer_norm(call.stream(), job);
}

void run_layer_norm_gradient(Call& call) {
  const Shape& shape = call.input(1).type.shape;
  LayerNormGradient job{};
  job.rows = shape.rows();
  job.width = shape.last(0);
  job.workspace = call.scratch(layer_norm_gradient_bytes(job.rows, job.width));
  if (call.is_dry()) {
    return;
  }
  job.dy = call.in(0);
  job.x = call.in(1);
  job.gamma = call.in(2);
  job.mean = call.in(3);
  job.rstd = call.in(4);
  job.residual = call.inputs() == 6 ? call.in(5) : Elements();
  job.dx = call.out(0);
  job.dgamma = call.out(1);
  job.dbeta = call.out(2);
  layer_norm_gradient(call.stream(), job);
}

void run_cross_entropy(Call& call) { run_loss<cross_entropy>(call); }

void run_cross_entropy_gradient(Call& call) { run_loss_gradient<cross_entropy>(call); }

void run_binary_cross_entropy(Call& call) { run_loss<binary_cross_entropy>(call); }

void run_binary_cross_entropy_gradient(Call& call) {
  run_loss_gradient<binary_cross_entropy>(call);
}

void run_mean(Call& call) {
  if (!call.is_dry()) {
    const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
    mean(call.stream(), call.in(0), call.out(0), around(call.input(0).type.shape, axis));
  }
}

void run_sum_to(Call& call) {
  const Spread from = *spread(call.output(0).type.shape, call.input(0).type.shape);
  std::byte* const workspace = call.scratch(sum_rows_bytes(from.outer, from.times, from.inner));
  if (!call.is_dry()) {
    sum_rows(call.stream(), call.in(0), call.out(0), from.outer, from.times, from.inner,
             workspace);
  }
}

}  // namespace halfwatt::cuda

#include "engine/backend/cuda/kernels/losses.h"
#include "engine/backend/cuda/kernels/types.cuh"

// Bound: launches; a row is some kilobytes. A warp a row, everything relative to the row's
// largest logit; no probability is formed and then passed to a logarithm.

namespace halfwatt::cuda {
namespace {

constexpr float kNothing = -INFINITY;

__device__ float cross_entropy_row(const Loss& job, Index row, int lane, float factor) {
  const Index first = row * job.classes;
  const Index label = reinterpret_cast<const std::int64_t*>(job.targets)[row];
  float most = kNothing;
  for (Index j = lane; j < job.classes; j += kWarp) {
    most = fmaxf(most, load(job.logits, first + j));
  }
  most = warp_max(most);
  const float shift = most == kNothing ? 0.0F : most;
  float sum = 0;
  float all = 0;
  for (Index j = lane; j < job.classes; j += kWarp) {
    const float z = load(job.logits, first + j) - shift;
    sum += expf(z);
    all += z;
  }
  sum = warp_sum(sum);
  all = warp_sum(all);
  const float spread = job.smoothing / static_cast<float>(job.classes);
  const float at_label = load(job.logits, first + label);
  float loss = logf(sum) - (1 - job.smoothing) * (at_label - shift);
  if (job.smoothing != 0) {  // 0 * -inf of a masked class would be NaN
    loss -= spread * all;
  }
  __syncwarp();  // the gradient may lie where the logits do
  if (job.gradient.data != nullptr) {
    for (Index j = lane; j < job.classes; j += kWarp) {
      const float share = expf(load(job.logits, first + j) - shift) / sum;
      const float target = j == label ? 1 - job.smoothing : 0.0F;
      store(job.gradient, first + j, factor * (share - spread - target));
    }
  }
  return loss;
}

__device__ float binary_row(const Loss& job, Index row, int lane, float factor) {
  const Index first = row * job.classes;
  float loss = 0;
  for (Index j = lane; j < job.classes; j += kWarp) {
    const float x = load(job.logits, first + j);
    const float target = load(job.shares, first + j);
    const float e = expf(-fabsf(x));
    loss += (x < 0 ? 0.0F : x) - x * target + log1pf(e);
    if (job.gradient.data != nullptr) {
      store(job.gradient, first + j, factor * ((x < 0 ? e : 1.0F) / (1 + e) - target));
    }
  }
  return warp_sum(loss) / static_cast<float>(job.classes);
}

template <bool kBinary>
__global__ void loss_kernel(Loss job) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index valid = *job.valid;
  const Index counted = max(Index{1}, kBinary ? valid * job.classes : valid);
  const float factor =
      job.factor.data != nullptr ? load(job.factor, 0) / static_cast<float>(counted) : 0.0F;
  const Index step = Index{gridDim.x} * (blockDim.x / kWarp);
  for (Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < job.rows;
       row += step) {
    float loss = 0;
    if (row < valid) {
      loss = kBinary ? binary_row(job, row, lane, factor)
                     : cross_entropy_row(job, row, lane, factor);
    } else if (job.gradient.data != nullptr) {
      for (Index j = lane; j < job.classes; j += kWarp) {
        store(job.gradient, row * job.classes + j, 0.0F);
      }
    }
    if (lane == 0 && job.losses.data != nullptr) {
      store(job.losses, row, loss);
    }
  }
}

// In order and in double.
__global__ void mean_kernel(Loss job) {
  const Index valid = min(*job.valid, job.rows);
  double sum = 0;
  for (Index row = 0; row < valid; ++row) {
    sum += static_cast<double>(load(job.losses, row));
  }
  store(job.mean, 0, valid == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(valid)));
}

template <bool kBinary>
void launch(Stream stream, const Loss& job) {
  if (job.rows > 0) {
    loss_kernel<kBinary><<<blocks_for(job.rows * kWarp), kThreads, 0, stream>>>(job);
  }
  if (job.mean) {
    mean_kernel<<<1, 1, 0, stream>>>(job);
  }
  check_launch("loss");
}

}  // namespace

void cross_entropy(Stream stream, const Loss& job) { launch<false>(stream, job); }

void binary_cross_entropy(Stream stream, const Loss& job) { launch<true>(stream, job); }

}  // namespace halfwatt::cuda

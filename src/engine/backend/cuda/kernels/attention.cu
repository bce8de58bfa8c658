#include "engine/backend/cuda/kernels/attention.cuh"

// What serves every format and card, where tensor cores do not: numbers are floats in shared
// memory, a warp has kRowsOfWarp rows (of queries, or of keys for their gradients) and passes
// over tiles of a warp's width of the other side, one of them a lane. Nothing is added up by
// atomics: a row's gradient is the work of one warp, so the bits are always the same.
//
// Bound: shared memory, two loads for a multiply-add; by far not the tensor cores.

namespace halfwatt::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kRowsOfWarp = 4;
constexpr int kRowsOfBlock = kWarps * kRowsOfWarp;
constexpr int kParts = static_cast<int>(kWidestHead) / kWarp;  // columns of a lane

/// Blocks of rows of one head.
__device__ Index blocks_of(const AttentionShape& shape) {
  return (shape.tokens + kRowsOfBlock - 1) / kRowsOfBlock;
}

/// Up to `rows` rows of `width` numbers, times `factor`, to rows `pitch` apart; zeros where
/// there are none.
template <DType E>
__device__ void fetch(const std::byte* from,
                      Index first,
                      Index stride,
                      Index valid,
                      int rows,
                      int width,
                      int pitch,
                      float factor,
                      float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += kWarps * kWarp) {
    const int row = i / width;
    const int column = i % width;
    to[row * pitch + column] =
        row < valid ? factor * load<E>(from, first + row * stride + column) : 0.0F;
  }
}

__device__ float dot(const float* a, const float* b, int width) {
  float sum = 0;
  for (int j = 0; j < width; ++j) {
    sum += a[j] * b[j];
  }
  return sum;
}

/// sums[part] += the lanes' weights times the rows of a tile.
__device__ void mix(float weight, const float* tile, int pitch, int width, float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = 0; row < kWarp; ++row) {
    const float share = __shfl_sync(0xffffffffU, weight, row);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int column = lane + part * kWarp;
      if (column < width) {
        sums[part] += share * tile[row * pitch + column];
      }
    }
  }
}

template <DType E>
__device__ void store_row(
    const float* sums, float factor, int width, std::byte* to, Index first) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int column = lane + part * kWarp;
    if (column < width) {
      store<E>(to, first + column, sums[part] * factor);
    }
  }
}

template <DType E>
__global__ void attention_kernel(Attention job) {
  extern __shared__ float shared[];
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const int pitch = width + 1;
  float* const keys = shared;
  float* const values = keys + kWarp * pitch;
  float* const queries = values + kWarp * pitch;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index blocks = blocks_of(shape);
  const Head head = head_of(shape, blockIdx.x / blocks);
  const Index first = blockIdx.x % blocks * kRowsOfBlock;
  fetch<E>(job.qkv.data, head.qkv + first * head.stride, head.stride, shape.tokens - first,
           kRowsOfBlock, width, width, job.scale, queries);
  float most[kRowsOfWarp];
  float total[kRowsOfWarp] = {};
  float sums[kRowsOfWarp][kParts] = {};
  for (float& each : most) {
    each = kNothing;
  }
  for (Index key = 0; key < job.keys; key += kWarp) {
    const Index valid = job.keys - key;
    const Index k = head.qkv + head.part + key * head.stride;
    __syncthreads();
    fetch<E>(job.qkv.data, k, head.stride, valid, kWarp, width, pitch, 1.0F, keys);
    fetch<E>(job.qkv.data, k + head.part, head.stride, valid, kWarp, width, pitch, 1.0F,
             values);
    __syncthreads();
#pragma unroll
    for (int row = 0; row < kRowsOfWarp; ++row) {
      const float* const query = queries + (warp * kRowsOfWarp + row) * width;
      const float score = lane < valid ? dot(query, keys + lane * pitch, width) : kNothing;
      const float now = fmaxf(most[row], warp_max(score));
      const float shift = shift_of(now);
      const float before = expf(most[row] - shift);
      const float weight = lane < valid ? expf(score - shift) : 0.0F;
      total[row] = total[row] * before + warp_sum(weight);
      for (float& each : sums[row]) {
        each *= before;
      }
      mix(weight, values, pitch, width, sums[row]);
      most[row] = now;
    }
  }
#pragma unroll
  for (int row = 0; row < kRowsOfWarp; ++row) {
    const Index token = first + warp * kRowsOfWarp + row;
    if (token < shape.tokens) {
      const float share = total[row] == 0 ? 0.0F : 1 / total[row];
      store_row<E>(sums[row], share, width, job.out.data, head.out + token * head.out_stride);
      if (lane == 0) {
        store(job.lse, head.row + token, shift_of(most[row]) + logf(total[row]));
      }
    }
  }
}

template <DType E>
__global__ void along_kernel(AttentionGradient job) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index rows = job.shape.images * job.shape.heads * job.shape.tokens;
  const Index step = Index{gridDim.x} * (blockDim.x / kWarp);
  for (Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < rows;
       row += step) {
    const Head head = head_of(job.shape, row / job.shape.tokens);
    const Index at = head.out + row % job.shape.tokens * head.out_stride;
    float sum = 0;
    for (Index j = lane; j < job.shape.width; j += kWarp) {
      sum += load<E>(job.out.data, at + j) * load<E>(job.dout.data, at + j);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      job.along[row] = sum;
    }
  }
}

/// The weight of a score whose row has this log of sums.
__device__ float weight_of(float score, float lse) { return expf(score - shift_of(lse)); }

template <DType E>
__global__ void query_gradient_kernel(AttentionGradient job) {
  extern __shared__ float shared[];
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const int pitch = width + 1;
  float* const keys = shared;
  float* const values = keys + kWarp * pitch;
  float* const queries = values + kWarp * pitch;
  float* const douts = queries + kRowsOfBlock * width;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index blocks = blocks_of(shape);
  const Head head = head_of(shape, blockIdx.x / blocks);
  const Index first = blockIdx.x % blocks * kRowsOfBlock;
  const Index left = shape.tokens - first;
  fetch<E>(job.qkv.data, head.qkv + first * head.stride, head.stride, left, kRowsOfBlock, width,
           width, job.scale, queries);
  fetch<E>(job.dout.data, head.out + first * head.out_stride, head.out_stride, left,
           kRowsOfBlock, width, width, 1.0F, douts);
  float sums[kRowsOfWarp][kParts] = {};
  for (Index key = 0; key < shape.tokens; key += kWarp) {
    const Index valid = shape.tokens - key;
    const Index k = head.qkv + head.part + key * head.stride;
    __syncthreads();
    fetch<E>(job.qkv.data, k, head.stride, valid, kWarp, width, pitch, 1.0F, keys);
    fetch<E>(job.qkv.data, k + head.part, head.stride, valid, kWarp, width, pitch, 1.0F,
             values);
    __syncthreads();
#pragma unroll
    for (int row = 0; row < kRowsOfWarp; ++row) {
      const int at = warp * kRowsOfWarp + row;
      const Index token = min(first + at, shape.tokens - 1);
      const float score = dot(queries + at * width, keys + lane * pitch, width);
      const float weight =
          lane < valid ? weight_of(score, load(job.lse, head.row + token)) : 0.0F;
      const float slope = dot(douts + at * width, values + lane * pitch, width);
      const float ds = lane < valid ? weight * (slope - job.along[head.row + token]) : 0.0F;
      mix(ds, keys, pitch, width, sums[row]);
    }
  }
#pragma unroll
  for (int row = 0; row < kRowsOfWarp; ++row) {
    const Index token = first + warp * kRowsOfWarp + row;
    if (token < shape.tokens) {
      store_row<E>(sums[row], job.scale, width, job.dqkv.data, head.qkv + token * head.stride);
    }
  }
}

template <DType E>
__global__ void key_gradient_kernel(AttentionGradient job) {
  extern __shared__ float shared[];
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const int pitch = width + 1;
  float* const queries = shared;
  float* const douts = queries + kWarp * pitch;
  float* const keys = douts + kWarp * pitch;
  float* const values = keys + kRowsOfBlock * width;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index blocks = blocks_of(shape);
  const Head head = head_of(shape, blockIdx.x / blocks);
  const Index first = blockIdx.x % blocks * kRowsOfBlock;
  const Index left = shape.tokens - first;
  const Index k = head.qkv + head.part + first * head.stride;
  fetch<E>(job.qkv.data, k, head.stride, left, kRowsOfBlock, width, width, 1.0F, keys);
  fetch<E>(job.qkv.data, k + head.part, head.stride, left, kRowsOfBlock, width, width, 1.0F,
           values);
  float of_keys[kRowsOfWarp][kParts] = {};
  float of_values[kRowsOfWarp][kParts] = {};
  for (Index query = 0; query < shape.tokens; query += kWarp) {
    const Index valid = shape.tokens - query;
    __syncthreads();
    fetch<E>(job.qkv.data, head.qkv + query * head.stride, head.stride, valid, kWarp, width,
             pitch, job.scale, queries);
    fetch<E>(job.dout.data, head.out + query * head.out_stride, head.out_stride, valid, kWarp,
             width, pitch, 1.0F, douts);
    __syncthreads();
    const Index token = head.row + min(query + lane, shape.tokens - 1);
    const float lse = load(job.lse, token);
    const float along = job.along[token];
#pragma unroll
    for (int row = 0; row < kRowsOfWarp; ++row) {
      const int at = warp * kRowsOfWarp + row;
      const float score = dot(keys + at * width, queries + lane * pitch, width);
      const float weight = lane < valid ? weight_of(score, lse) : 0.0F;
      const float slope = dot(values + at * width, douts + lane * pitch, width);
      const float ds = lane < valid ? weight * (slope - along) : 0.0F;
      mix(weight, douts, pitch, width, of_values[row]);
      mix(ds, queries, pitch, width, of_keys[row]);  // q is scaled already
    }
  }
#pragma unroll
  for (int row = 0; row < kRowsOfWarp; ++row) {
    const Index token = first + warp * kRowsOfWarp + row;
    if (token < shape.tokens) {
      const Index at = head.qkv + head.part + token * head.stride;
      store_row<E>(of_keys[row], 1.0F, width, job.dqkv.data, at);
      store_row<E>(of_values[row], 1.0F, width, job.dqkv.data, at + head.part);
    }
  }
}

/// Two tiles, and so many times the rows of a block.
std::size_t shared_bytes(const AttentionShape& shape, Index times) {
  return static_cast<std::size_t>(2 * kWarp * (shape.width + 1) +
                                  times * kRowsOfBlock * shape.width) *
         sizeof(float);
}

}  // namespace

void attention(Stream stream, const Attention& job) {
  const AttentionShape& shape = job.shape;
  if (shape.images * shape.tokens == 0) {
    return;
  }
  if (is_for_tensor_cores(job)) {
    attention_on_tensor_cores(stream, job);
  } else {
    with_storage(job.qkv.dtype, [&](auto tag) {
      attention_kernel<decltype(tag)::kDType>
          <<<grid_of(shape, kRowsOfBlock), kWarps * kWarp, shared_bytes(shape, 1), stream>>>(
              job);
    });
  }
  check_launch("attention");
}

void attention_gradient(Stream stream, const AttentionGradient& job) {
  const AttentionShape& shape = job.shape;
  if (shape.images * shape.tokens == 0) {
    return;
  }
  if (is_for_tensor_cores(job)) {
    attention_gradient_on_tensor_cores(stream, job);
  } else {
    with_storage(job.qkv.dtype, [&](auto tag) {
      constexpr DType kE = decltype(tag)::kDType;
      const Index rows = shape.images * shape.heads * shape.tokens;
      along_kernel<kE><<<blocks_for(rows * kWarp), kThreads, 0, stream>>>(job);
      const std::size_t bytes = shared_bytes(shape, 2);
      const unsigned grid = grid_of(shape, kRowsOfBlock);
      query_gradient_kernel<kE><<<grid, kWarps * kWarp, bytes, stream>>>(job);
      key_gradient_kernel<kE><<<grid, kWarps * kWarp, bytes, stream>>>(job);
    });
  }
  check_launch("attention_gradient");
}

}  // namespace halfwatt::cuda

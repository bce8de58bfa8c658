#include "engine/backend/cuda/kernels/attention_rectangles.cuh"

namespace halfwatt::cuda {
namespace {

/// Weights of one row of a tile, in the place of its scores, and what they change about its
/// sums.
template <class C>
__device__ void soften(const Thread& me,
                       int valid,
                       float (&scores)[C::kAcross],
                       float (&sums)[2 * C::kPairs],
                       float& most,
                       float& total) {
  float now = kNothing;
#pragma unroll
  for (int j = 0; j < C::kAcross; ++j) {
    scores[j] = me.lane + j * kLanes < valid ? scores[j] : kNothing;
    now = fmaxf(now, scores[j]);
  }
  now = fmaxf(most, row_max(now));
  const float shift = shift_of(now);
  const float before = expf(most - shift);
  float added = 0;
#pragma unroll
  for (int j = 0; j < C::kAcross; ++j) {
    scores[j] = me.lane + j * kLanes < valid ? expf(scores[j] - shift) : 0.0F;
    added += scores[j];
  }
  total = total * before + row_sum(added);
#pragma unroll
  for (float& sum : sums) {
    sum *= before;
  }
  most = now;
}

template <DType E, class C>
__global__ void __launch_bounds__(C::kThreads, kLeastBlocks) attention_kernel(Attention job) {
  extern __shared__ float4 shared[];
  float* const queries = reinterpret_cast<float*>(shared);
  float* const keys = queries + C::kOwn;
  float* const values = keys + C::kOther;
  float* const weights = values + C::kOther;
  const AttentionShape& shape = job.shape;
  const auto width = static_cast<int>(shape.width);
  const auto tokens = static_cast<int>(shape.tokens);
  const auto count = static_cast<int>(job.keys);
  const Thread me;
  const BlockRows rows = BlockRows::of<C>(shape);
  const Head& head = rows.head;
  fetch<E, C, C::kRows>(job.qkv.data, head.qkv + rows.first * head.stride, head.stride,
                        rows.valid, width, job.scale, queries);
  float most[C::kTall];
  float total[C::kTall] = {};
  typename C::Sums sums = {};
#pragma unroll
  for (float& each : most) {
    each = kNothing;
  }
  const bool has_rows = me.warp * 2 * C::kTall < rows.valid;
  for (int key = 0; key < count; key += C::kTile) {
    const int valid = count - key;
    const Index k = head.qkv + head.part + key * head.stride;
    __syncthreads();
    fetch<E, C, C::kTile>(job.qkv.data, k, head.stride, valid, width, 1.0F, keys);
    fetch<E, C, C::kTile>(job.qkv.data, k + head.part, head.stride, valid, width, 1.0F, values);
    __syncthreads();
    if (!has_rows) {
      continue;
    }
    typename C::Scores scores;
    dots<C>(me, queries, keys, valid, scores);
#pragma unroll
    for (int i = 0; i < C::kTall; ++i) {
      soften<C>(me, valid, scores[i], sums[i], most[i], total[i]);
    }
    share<C>(me, scores, weights);
    mix<C>(me, weights, values, valid, sums);
  }
#pragma unroll
  for (int i = 0; i < C::kTall; ++i) {
    const int token = rows.first + me.row<C>(i);
    if (token < tokens) {
      const float part = total[i] == 0 ? 0.0F : 1 / total[i];
      store_row<E, C>(me, sums[i], part, width, job.out.data,
                      head.out + token * head.out_stride);
      if (me.lane == 0) {
        store(job.lse, head.row + token, shift_of(most[i]) + logf(total[i]));
      }
    }
  }
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
    with_cut(job, [&](auto tag, auto cut) {
      using C = decltype(cut);
      launch<C>(attention_kernel<decltype(tag)::kDType, C>, job, shared_bytes<C>(), stream);
    });
  }
  check_launch("attention");
}

}  // namespace halfwatt::cuda

#pragma once

#include "engine/backend/cpu/kernels/per_isa/scratch.h"
#include "engine/backend/cpu/kernels/per_isa/softmax.h"
#include "engine/backend/cpu/kernels/per_isa/tile.h"

// Bound: flops, 4 n^2 d for each image and head (10 MFLOP at n = 197, d = 64) against 4 n d
// elements of memory. One thread takes one image and head: k and v are packed once (51 KB
// each), then kQueries rows of q at a time are multiplied, turned into weights and mixed, and
// their scores (76 KB) never leave L2. Two batched matmuls with a softmax between them, as
// frameworks without this do it, write and read 12 x 197 x 197 scores an image three times.
//
// Rejected: streaming over keys with a running maximum (flash attention): a row of scores fits
// into the cache for any image that a ViT sees, and rescaling would cost a pass over `mixed`
// for every block of keys. Division by the row's sum comes last, d instead of n times.
//
// A row's bits depend on its own query and its image's keys alone.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

inline constexpr Index kQueries = 96;  // a multiple of every kTileRows

/// Where one image and head lies in tensors of [images, tokens, ..., heads, width].
struct Head {
  Index qkv, qkv_stride, part;  // first element of q, from token to token, from q to k to v
  Index out, out_stride;
  Index lse;
};

inline Head head_at(const AttentionShape& shape, Index at) {
  const Index image = at / shape.heads;
  const Index head = at % shape.heads;
  const Index part = shape.heads * shape.width;
  return {.qkv = image * shape.tokens * 3 * part + head * shape.width,
          .qkv_stride = 3 * part,
          .part = part,
          .out = image * shape.tokens * part + head * shape.width,
          .out_stride = part,
          .lse = at * shape.tokens};
}

template <class E>
struct AttentionScratch {
  using T = Real<E>;
  Packed<E>* queries;  // [kQueries][d], packed
  Packed<E>* keys;     // [d][n], packed
  T* values;           // [n][d], packed
  T* packed;           // [kQueries][n]: weights, packed
  T* scores;           // [kQueries, n]
  T* mixed;            // [kQueries, d]
};

template <class E>
AttentionScratch<E> lay_out_attention(Scratch& scratch, const AttentionShape& shape) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = shape.tokens;
  const Index d = shape.width;
  return {.queries = scratch.take<P>(kQueries * steps_of<P>(d)),
          .keys = scratch.take<P>(rounded_up(n, kTileColumns<T>) * steps_of<P>(d)),
          .values = scratch.take<T>(rounded_up(d, kTileColumns<T>) * n),
          .packed = scratch.take<T>(kQueries * n),
          .scores = scratch.take<T>(kQueries * n),
          .mixed = scratch.take<T>(kQueries * d)};
}

template <class E>
std::size_t attention_forward_bytes(const AttentionShape& shape, int threads) {
  Scratch scratch(nullptr);
  lay_out_attention<E>(scratch, shape);
  return scratch.bytes(threads);
}

/// c = scale * q k^T of `queries` rows of q, `stride` apart. Numbers are scaled when they are
/// packed; pairs must stay as they are stored, and it is the scores that are scaled.
template <class E>
void score(const E* q,
           Index stride,
           Real<E> scale,
           const Product<Real<E>, Packed<E>>& product,
           Index width,
           Packed<E>* packed) {
  const Operand<E> rows{q, stride, 1};
  if constexpr (std::is_same_v<Packed<E>, Real<E>>) {
    pack<kTileRows>(rows, product.m, width, scale, packed);
    multiply(product);
  } else {
    pack_stored<kTileRows>(rows, product.m, width, packed);
    multiply(product);
    for (Index i = 0; i < product.m; ++i) {
      Real<E>* row = product.c + i * product.c_stride;
#pragma omp simd
      for (Index j = 0; j < product.n; ++j) {
        row[j] *= scale;
      }
    }
  }
}

/// Queries `first` and following of one head.
template <class E>
void attend(const AttentionForward<E>& job,
            const Head& head,
            Index first,
            const AttentionScratch<E>& scratch) {
  using T = Real<E>;
  const Index n = job.shape.tokens;
  const Index d = job.shape.width;
  const Index queries = smaller(kQueries, n - first);
  const E* q = job.qkv + head.qkv + first * head.qkv_stride;
  score(q, head.qkv_stride, job.scale,
        Product<T, Packed<E>>{.m = queries,
                              .n = n,
                              .depth = steps_of<Packed<E>>(d),
                              .a = scratch.queries,
                              .b = scratch.keys,
                              .c = scratch.scores,
                              .c_stride = n},
        d, scratch.queries);
  T sums[kQueries];
  for (Index i = 0; i < queries; ++i) {
    T* row = scratch.scores + i * n;
    const T shift = shift_of(row, n);
    sums[i] = exp_row(row, n, shift, row);
    job.lse[head.lse + first + i] = shift + log_of(sums[i]);
  }
  pack<kTileRows>(Operand<T>{scratch.scores, n, 1}, queries, n, T(1), scratch.packed);
  multiply(Product<T>{.m = queries,
                      .n = d,
                      .depth = n,
                      .a = scratch.packed,
                      .b = scratch.values,
                      .c = scratch.mixed,
                      .c_stride = d});
  for (Index i = 0; i < queries; ++i) {
    const T share = sums[i] == 0 ? 0 : 1 / sums[i];
    const T* mixed = scratch.mixed + i * d;
    E* out = job.out + head.out + (first + i) * head.out_stride;
#pragma omp simd
    for (Index j = 0; j < d; ++j) {
      out[j] = stored<E>(mixed[j] * share);
    }
  }
}

template <class E>
void attention_forward(Workers& workers, const AttentionForward<E>& job) {
  using T = Real<E>;
  const AttentionShape& shape = job.shape;
  const std::size_t bytes = attention_forward_bytes<E>(shape, 1);
  workers.parallel_for(shape.images * shape.heads, 1, [&](Index begin, Index end, int thread) {
    Scratch own = Scratch::of_thread(job.workspace, bytes, thread);
    const AttentionScratch<E> scratch = lay_out_attention<E>(own, shape);
    for (Index at = begin; at < end; ++at) {
      const Head head = head_at(shape, at);
      const E* k = job.qkv + head.qkv + head.part;
      const E* v = k + head.part;
      pack_stored<kTileColumns<T>>(Operand<E>{k, head.qkv_stride, 1}, shape.tokens, shape.width,
                                   scratch.keys);
      pack<kTileColumns<T>>(Operand<E>{v, 1, head.qkv_stride}, shape.width, shape.tokens, T(1),
                            scratch.values);
      for (Index first = 0; first < shape.tokens; first += kQueries) {
        attend(job, head, first, scratch);
      }
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

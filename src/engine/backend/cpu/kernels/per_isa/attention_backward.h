#pragma once

#include "engine/backend/cpu/kernels/per_isa/attention.h"

// Bound: flops, 10 n^2 d for each image and head: the scores are computed again from q, k and
// the forward's log of sums rather than kept, 12 x 197 x 197 an image. With w = exp(s - lse),
//   dv = w^T dout,  dw = dout v^T,  ds = w (dw - out . dout),  dq = scale ds k,
//   dk = ds^T (scale q)
// for kQueries queries at a time; dk and dv grow in fp32 from block to block, in this order, on
// one thread.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

template <class E>
struct AttentionGradients {
  using T = Real<E>;
  Packed<E>* keys;    // [d][n] packed: right side of q k^T
  Packed<E>* values;  // [d][n] packed: right side of dout v^T
  Packed<E>* stored;  // [kQueries][d] packed: left side of both
  T* keys_by_token;   // [n][d] packed: right side of ds k
  T* left;            // the left side of the product at hand
  T* right;           // [kQueries][d] packed: q or dout
  T* weights;         // [kQueries, n]
  T* slopes;          // [kQueries, n]: dw, then ds
  T* dq;              // [kQueries, d]
  T* dk;              // [n, d]
  T* dv;              // [n, d]
};

template <class E>
AttentionGradients<E> lay_out_gradients(Scratch& scratch, const AttentionShape& shape) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = shape.tokens;
  const Index d = shape.width;
  const Index n_columns = rounded_up(n, kTileColumns<T>);
  const Index d_columns = rounded_up(d, kTileColumns<T>);
  // Left sides are kQueries rows of n or d, or, transposed, n rows of kQueries.
  const Index left = kQueries * larger(rounded_up(n, kTileRows), d);
  return {.keys = scratch.take<P>(n_columns * steps_of<P>(d)),
          .values = scratch.take<P>(n_columns * steps_of<P>(d)),
          .stored = scratch.take<P>(kQueries * steps_of<P>(d)),
          .keys_by_token = scratch.take<T>(d_columns * n),
          .left = scratch.take<T>(left),
          .right = scratch.take<T>(d_columns * kQueries),
          .weights = scratch.take<T>(kQueries * n),
          .slopes = scratch.take<T>(kQueries * n),
          .dq = scratch.take<T>(kQueries * d),
          .dk = scratch.take<T>(n * d),
          .dv = scratch.take<T>(n * d)};
}

template <class E>
std::size_t attention_backward_bytes(const AttentionShape& shape, int threads) {
  Scratch scratch(nullptr);
  lay_out_gradients<E>(scratch, shape);
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

/// Weights and ds of `queries` rows from `first`, from scores and dw in their places.
template <class E>
void weigh(const AttentionBackward<E>& job,
           const Head& head,
           Index first,
           Index queries,
           const AttentionGradients<E>& scratch) {
  using T = Real<E>;
  const Index n = job.shape.tokens;
  for (Index i = 0; i < queries; ++i) {
    const Index token = (first + i) * head.out_stride;
    const E* out = job.out + head.out + token;
    const E* dout = job.dout + head.out + token;
    T along = 0;
#pragma omp simd reduction(+ : along)
    for (Index j = 0; j < job.shape.width; ++j) {
      along += real(out[j]) * real(dout[j]);
    }
    const T lse = job.lse[head.lse + first + i];
    T* weights = scratch.weights + i * n;
    T* slopes = scratch.slopes + i * n;
    // -inf: no score of the row is finite, and its weights are 0, as forward had them.
    const T shift = lse == -__builtin_inff() ? 0 : lse;
    exp_row(weights, n, shift, weights);
#pragma omp simd
    for (Index j = 0; j < n; ++j) {
      slopes[j] = weights[j] * (slopes[j] - along);
    }
  }
}

/// Queries `first` and following of one head: their dq, and what they add to dk and dv.
template <class E>
void attend_backward(const AttentionBackward<E>& job,
                     const Head& head,
                     Index first,
                     const AttentionGradients<E>& scratch) {
  using T = Real<E>;
  const Index n = job.shape.tokens;
  const Index d = job.shape.width;
  const Index queries = smaller(kQueries, n - first);
  const E* q = job.qkv + head.qkv + first * head.qkv_stride;
  const E* dout = job.dout + head.out + first * head.out_stride;
  Product<T, Packed<E>> scores{.m = queries,
                               .n = n,
                               .depth = steps_of<Packed<E>>(d),
                               .a = scratch.stored,
                               .c_stride = n};

  scores.b = scratch.keys;
  scores.c = scratch.weights;
  score(q, head.qkv_stride, job.scale, scores, d, scratch.stored);
  pack_stored<kTileRows>(Operand<E>{dout, head.out_stride, 1}, queries, d, scratch.stored);
  scores.b = scratch.values;
  scores.c = scratch.slopes;
  multiply(scores);
  weigh(job, head, first, queries, scratch);

  pack<kTileRows>(Operand<T>{scratch.slopes, n, 1}, queries, n, job.scale, scratch.left);
  multiply(Product<T>{.m = queries,
                      .n = d,
                      .depth = n,
                      .a = scratch.left,
                      .b = scratch.keys_by_token,
                      .c = scratch.dq,
                      .c_stride = d});

  Product<T> by_key{.m = n,
                    .n = d,
                    .depth = queries,
                    .a = scratch.left,
                    .b = scratch.right,
                    .c_stride = d,
                    .accumulate = first > 0};
  pack<kTileRows>(Operand<T>{scratch.slopes, 1, n}, n, queries, T(1), scratch.left);
  pack<kTileColumns<T>>(Operand<E>{q, 1, head.qkv_stride}, d, queries, job.scale,
                        scratch.right);
  by_key.c = scratch.dk;
  multiply(by_key);
  pack<kTileRows>(Operand<T>{scratch.weights, 1, n}, n, queries, T(1), scratch.left);
  pack<kTileColumns<T>>(Operand<E>{dout, 1, head.out_stride}, d, queries, T(1), scratch.right);
  by_key.c = scratch.dv;
  multiply(by_key);
}

/// Rows of `from` [count, width] to elements `stride` apart.
template <class E>
void store_rows(const Real<E>* from, Index count, Index width, E* to, Index stride) {
  for (Index i = 0; i < count; ++i, from += width, to += stride) {
#pragma omp simd
    for (Index j = 0; j < width; ++j) {
      to[j] = stored<E>(from[j]);
    }
  }
}

template <class E>
void attention_backward(Workers& workers, const AttentionBackward<E>& job) {
  using T = Real<E>;
  const AttentionShape& shape = job.shape;
  const Index n = shape.tokens;
  const Index d = shape.width;
  const std::size_t bytes = attention_backward_bytes<E>(shape, 1);
  workers.parallel_for(shape.images * shape.heads, 1, [&](Index begin, Index end, int thread) {
    Scratch own = Scratch::of_thread(job.workspace, bytes, thread);
    const AttentionGradients<E> scratch = lay_out_gradients<E>(own, shape);
    for (Index at = begin; at < end; ++at) {
      const Head head = head_at(shape, at);
      const Index stride = head.qkv_stride;
      const E* k = job.qkv + head.qkv + head.part;
      const E* v = k + head.part;
      pack_stored<kTileColumns<T>>(Operand<E>{k, stride, 1}, n, d, scratch.keys);
      pack_stored<kTileColumns<T>>(Operand<E>{v, stride, 1}, n, d, scratch.values);
      pack<kTileColumns<T>>(Operand<E>{k, 1, stride}, d, n, T(1), scratch.keys_by_token);
      E* dq = job.dqkv + head.qkv;
      for (Index first = 0; first < n; first += kQueries) {
        attend_backward(job, head, first, scratch);
        store_rows(scratch.dq, smaller(kQueries, n - first), d, dq + first * stride, stride);
      }
      store_rows(scratch.dk, n, d, dq + head.part, stride);
      store_rows(scratch.dv, n, d, dq + 2 * head.part, stride);
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

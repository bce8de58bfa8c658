#pragma once

#include "engine/backend/cpu/kernels/per_isa/attention.h"

// Bound: flops, 10 n^2 d for each image and head: the scores are computed again from q, k and
// the forward's log of sums rather than kept, 12 x 197 x 197 an image. With w = exp(s - lse),
//   dv = w^T dout,  dw = dout v^T,  ds = w (dw - out . dout),  dq = scale ds k,
//   dk = ds^T (scale q)
// for up to kQueries queries at a time; dk and dv grow in fp32 from block to block, in this
// order, on one thread. All left sides are read where they lie: rows of q, dout and ds, and
// columns of ds and w.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

template <class E>
struct AttentionGradients {
  using T = Real<E>;
  Packed<E>* keys;     // [d][n], packed; numbers times the scale: right side of q k^T
  Packed<E>* values;   // [d][n] packed: right side of dout v^T
  Packed<E>* numbers;  // [kQueries, d]: q or dout, where they cannot be read in place
  Packed<E>* few;      // a tile of these
  T* keys_by_token;    // [n][d] packed, times the scale: right side of ds k
  T* right;            // [kQueries][d] packed: q times the scale, or dout
  T* weights;          // [kQueries, n], rows as long as score_stride() says
  T* slopes;           // the same: dw, then ds
  T* few_slopes;       // a tile of these
  T* dq;               // [kQueries, d]
  T* dk;               // [n, d]
  T* dv;               // [n, d]
};

template <class E>
AttentionGradients<E> lay_out_gradients(Scratch& scratch, const AttentionShape& shape) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = shape.tokens;
  const Index d = shape.width;
  const Index n_columns = rounded_up(n, kTileColumns<T>);
  const Index d_columns = rounded_up(d, kTileColumns<T>);
  return {
      .keys = scratch.take<P>(n_columns * steps_of<P>(d)),
      .values = scratch.take<P>(n_columns * steps_of<P>(d)),
      .numbers = scratch.take<P>(has_queries_in_place<E>(d) ? 0 : kQueries * steps_of<P>(d)),
      .few = scratch.take<P>(kTileRows * steps_of<P>(d)),
      .keys_by_token = scratch.take<T>(d_columns * n),
      .right = scratch.take<T>(d_columns * kQueries),
      .weights = scratch.take<T>(kQueries * score_stride<T>(n)),
      .slopes = scratch.take<T>(kQueries * score_stride<T>(n)),
      .few_slopes = scratch.take<T>(kTileRows * n),
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

/// Weights and ds of `queries` rows from `first`, from scores and dw in their places.
template <class E>
void weigh(const AttentionBackward<E>& job,
           const Head& head,
           Index first,
           Index queries,
           const AttentionGradients<E>& scratch) {
  using T = Real<E>;
  const Index n = job.shape.tokens;
  const Index stride = score_stride<T>(n);
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
    T* weights = scratch.weights + i * stride;
    T* slopes = scratch.slopes + i * stride;
    if constexpr (!kHasNumbers<E>) {
      each(0, n, [=](Index j) { weights[j] *= job.scale; });
    }
    // -inf: no score of the row is finite, and its weights are 0, as forward had them.
    const T shift = lse == -__builtin_inff() ? 0 : lse;
    const Index whole = with_scores_filled_up(weights, n);
    exp_row(weights, whole, shift, weights);
    each(0, n, [=](Index j) { slopes[j] = weights[j] * (slopes[j] - along); });
  }
}

/// What `queries` queries from `first` on of one head add to dk = ds^T q or dv = w^T dout.
template <class E>
void add_by_key(const AttentionBackward<E>& job,
                Index first,
                Index queries,
                const Real<E>* scores,
                const Real<E>* right,
                Real<E>* to) {
  using T = Real<E>;
  multiply_columns(ColumnProduct<T>{.m = job.shape.tokens,
                                    .n = job.shape.width,
                                    .steps = queries,
                                    .a = scores,
                                    .a_stride = score_stride<T>(job.shape.tokens),
                                    .b = right,
                                    .c = to,
                                    .c_stride = job.shape.width,
                                    .accumulate = first > 0});
}

/// `queries` queries from `first` on of one head: their dq, and what they add to dk and dv.
template <class E>
void attend_backward(const AttentionBackward<E>& job,
                     const Head& head,
                     Index first,
                     Index queries,
                     const AttentionGradients<E>& scratch) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = job.shape.tokens;
  const Index d = job.shape.width;
  const E* q = job.qkv + head.qkv + first * head.qkv_stride;
  const E* dout = job.dout + head.out + first * head.out_stride;
  RowProduct<T, P> scores{
      .m = queries,
      .n = n,
      .steps = steps_of<P>(d),
      .a = readable_queries(q, head.qkv_stride, queries, d, scratch.numbers),
      .b = scratch.keys,
      .c = scratch.weights,
      .c_stride = score_stride<T>(n),
      .copy = scratch.few};
  multiply_rows(scores);
  scores.a = readable_queries(dout, head.out_stride, queries, d, scratch.numbers);
  scores.b = scratch.values;
  scores.c = scratch.slopes;
  multiply_rows(scores);
  weigh(job, head, first, queries, scratch);

  multiply_rows(RowProduct<T, T>{.m = queries,
                                 .n = d,
                                 .steps = n,
                                 .a = {scratch.slopes, score_stride<T>(n)},
                                 .b = scratch.keys_by_token,
                                 .c = scratch.dq,
                                 .c_stride = d,
                                 .copy = scratch.few_slopes});
  pack<kTileColumns<T>>(Operand<E>{q, 1, head.qkv_stride}, d, queries, job.scale,
                        scratch.right);
  add_by_key(job, first, queries, scratch.slopes, scratch.right, scratch.dk);
  pack<kTileColumns<T>>(Operand<E>{dout, 1, head.out_stride}, d, queries, T(1), scratch.right);
  add_by_key(job, first, queries, scratch.weights, scratch.right, scratch.dv);
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

/// Queries of a block: whole tiles, and as many in each block as in any other.
inline Index queries_of_block(Index tokens) {
  const Index blocks = (tokens + kQueries - 1) / kQueries;
  return rounded_up((tokens + blocks - 1) / blocks, kTileRows);
}

/// The gradients of one head.
template <class E>
void attention_backward_of(const AttentionBackward<E>& job,
                           const Head& head,
                           const AttentionGradients<E>& scratch) {
  const Index n = job.shape.tokens;
  const Index d = job.shape.width;
  const Index stride = head.qkv_stride;
  const E* k = job.qkv + head.qkv + head.part;
  pack_keys(Operand<E>{k, stride, 1}, job.shape, job.scale, scratch.keys);
  constexpr int kColumns = kTileColumns<Real<E>>;
  pack_stored<kColumns>(Operand<E>{k + head.part, stride, 1}, n, d, scratch.values);
  pack<kColumns>(Operand<E>{k, 1, stride}, d, n, job.scale, scratch.keys_by_token);
  E* dq = job.dqkv + head.qkv;
  const Index block = queries_of_block(n);
  for (Index first = 0; first < n; first += block) {
    const Index queries = smaller(block, n - first);
    attend_backward(job, head, first, queries, scratch);
    store_rows(scratch.dq, queries, d, dq + first * stride, stride);
  }
  store_rows(scratch.dk, n, d, dq + head.part, stride);
  store_rows(scratch.dv, n, d, dq + 2 * head.part, stride);
}

template <class E>
void attention_backward(Workers& workers, const AttentionBackward<E>& job) {
  const AttentionShape& shape = job.shape;
  const std::size_t bytes = attention_backward_bytes<E>(shape, 1);
  workers.parallel_in_turns(
      shape.images * shape.heads, [&](Index begin, Index end, int thread) {
        Scratch own = Scratch::of_thread(job.workspace, bytes, thread);
        const AttentionGradients<E> scratch = lay_out_gradients<E>(own, shape);
        for (Index at = begin; at < end; ++at) {
          attention_backward_of(job, head_at(shape, at), scratch);
        }
      });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

#pragma once

#include "engine/backend/cpu/kernels/per_isa/scratch.h"
#include "engine/backend/cpu/kernels/per_isa/softmax.h"
#include "engine/backend/cpu/kernels/per_isa/tile.h"

// Bound: flops, 4 n^2 d for each image and head (10 MFLOP at n = 197, d = 64) against 4 n d
// elements of memory. A thread packs k and v of a head once (51 KB each), then kQueries rows of
// q at a time are multiplied from where they lie, turned into weights and mixed, and their
// scores (76 KB) never leave L2. Two batched matmuls with a softmax between them, as frameworks
// without this do it, write and read 12 x 197 x 197 scores an image three times.
//
// Threads share the tiles of queries of all heads evenly, so that one image keeps them all busy
// too; two that meet in a head both pack it, some 6 % of its cost.
//
// Rejected: streaming over keys with a running maximum (flash attention): a row of scores fits
// into the cache for any image that a ViT sees, and rescaling would cost a pass over `mixed`
// for every block of keys. Division by the row's sum comes last, d instead of n times.
//
// A row's bits depend on its own query and its image's keys alone.
//
// Rejected: weights as pairs of bf16 where there are instructions for these. A Sapphire Rapids
// does one VDPBF16PS where it does two multiply-adds of numbers, so nothing is won but the cost
// of rounding (vit_tiny, 16 images: 26 to 30 ms); the scores gain from not being converted.

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

/// Elements from a row of scores to the next: whole tiles, and an odd number of cache lines, so
/// that what a tile reads of one row after another does not fall into one set of the cache.
template <class T>
Index score_stride(Index tokens) {
  constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));
  return (rounded_up(rounded_up(tokens, kTileRows), kLine) / kLine | 1) * kLine;
}

/// Those that have no score, up to a whole vector, get a weight of 0.
template <class T>
Index with_scores_filled_up(T* row, Index tokens) {
  const Index all = rounded_up(tokens, kLanes<T>);
  for (Index j = tokens; j < all; ++j) {
    row[j] = -__builtin_inff();
  }
  return all;
}

template <class E>
inline constexpr bool kHasNumbers = std::is_same_v<Packed<E>, Real<E>>;

/// Whether rows of q and dout can be read where they lie.
template <class E>
bool has_queries_in_place(Index width) {
  return kReadsInPlace<E> && width % static_cast<Index>(sizeof(Packed<E>) / sizeof(E)) == 0;
}

template <class E>
struct AttentionScratch {
  using T = Real<E>;
  Packed<E>* queries;  // [kQueries, d] as numbers, where they cannot be read in place
  Packed<E>* keys;     // [d][n], packed; numbers times the scale
  T* values;           // [n][d], packed
  T* scores;           // [kQueries, n], rows as long as score_stride() says
  T* mixed;            // [kQueries, d]
  Packed<E>* few;      // a tile of queries
  T* few_weights;      // a tile of weights
};

template <class E>
AttentionScratch<E> lay_out_attention(Scratch& scratch, const AttentionShape& shape) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = shape.tokens;
  const Index d = shape.width;
  return {
      .queries = scratch.take<P>(has_queries_in_place<E>(d) ? 0 : kQueries * steps_of<P>(d)),
      .keys = scratch.take<P>(rounded_up(n, kTileColumns<T>) * steps_of<P>(d)),
      .values = scratch.take<T>(rounded_up(d, kTileColumns<T>) * n),
      .scores = scratch.take<T>(kQueries * score_stride<T>(n)),
      .mixed = scratch.take<T>(kQueries * d),
      .few = scratch.take<P>(kTileRows * steps_of<P>(d)),
      .few_weights = scratch.take<T>(kTileRows * n)};
}

template <class E>
std::size_t attention_forward_bytes(const AttentionShape& shape, int threads) {
  Scratch scratch(nullptr);
  lay_out_attention<E>(scratch, shape);
  return scratch.bytes(threads);
}

/// Rows of q as a tile reads them: where they lie, or a copy in numbers, or in pairs that an
/// odd row does not have of itself.
template <class E>
TileRows<Packed<E>> readable_queries(
    const E* q, Index stride, Index rows, Index width, Packed<E>* copy) {
  using P = Packed<E>;
  if (has_queries_in_place<E>(width)) {
    return {reinterpret_cast<const P*>(q), stride / static_cast<Index>(sizeof(P) / sizeof(E))};
  }
  const Index steps = steps_of<P>(width);
  for (Index i = 0; i < rows; ++i) {
    const E* row = q + i * stride;
    P* to = copy + i * steps;
    if constexpr (kHasNumbers<E>) {
      each(0, width, [=](Index j) { to[j] = real(row[j]); });
    } else {
      pack_stored<1>(Operand<E>{row, 0, 1}, 1, width, to);
    }
  }
  return {copy, steps};
}

/// Keys, packed. Numbers are scaled then; pairs must stay as they are stored, and it is the
/// scores that are scaled.
template <class E>
void pack_keys(const Operand<E>& keys,
               const AttentionShape& shape,
               Real<E> scale,
               Packed<E>* to) {
  constexpr int kColumns = kTileColumns<Real<E>>;
  if constexpr (kHasNumbers<E>) {
    pack<kColumns>(keys, shape.tokens, shape.width, scale, to);
  } else {
    pack_stored<kColumns>(keys, shape.tokens, shape.width, to);
  }
}

/// Keys and values of a head.
template <class E>
void pack_head(const AttentionForward<E>& job,
               const Head& head,
               const AttentionScratch<E>& scratch) {
  using T = Real<E>;
  const AttentionShape& shape = job.shape;
  const E* k = job.qkv + head.qkv + head.part;
  pack_keys(Operand<E>{k, head.qkv_stride, 1}, shape, job.scale, scratch.keys);
  pack<kTileColumns<T>>(Operand<E>{k + head.part, 1, head.qkv_stride}, shape.width,
                        shape.tokens, T(1), scratch.values);
}

/// `queries` queries from `first` on of one head.
template <class E>
void attend(const AttentionForward<E>& job,
            const Head& head,
            Index first,
            Index queries,
            const AttentionScratch<E>& scratch) {
  using T = Real<E>;
  using P = Packed<E>;
  const Index n = job.shape.tokens;
  const Index d = job.shape.width;
  const E* q = job.qkv + head.qkv + first * head.qkv_stride;
  multiply_rows(
      RowProduct<T, P>{.m = queries,
                       .n = n,
                       .steps = steps_of<P>(d),
                       .a = readable_queries(q, head.qkv_stride, queries, d, scratch.queries),
                       .b = scratch.keys,
                       .c = scratch.scores,
                       .c_stride = score_stride<T>(n),
                       .copy = scratch.few});
  T sums[kQueries];
  for (Index i = 0; i < queries; ++i) {
    T* row = scratch.scores + i * score_stride<T>(n);
    if constexpr (!kHasNumbers<E>) {
      each(0, n, [=](Index j) { row[j] *= job.scale; });
    }
    const Index whole = with_scores_filled_up(row, n);
    const T shift = shift_of(row, whole);
    sums[i] = exp_row(row, whole, shift, row);
    job.lse[head.lse + first + i] = shift + log_of(sums[i]);
  }
  multiply_rows(RowProduct<T, T>{.m = queries,
                                 .n = d,
                                 .steps = n,
                                 .a = {scratch.scores, score_stride<T>(n)},
                                 .b = scratch.values,
                                 .c = scratch.mixed,
                                 .c_stride = d,
                                 .copy = scratch.few_weights});
  for (Index i = 0; i < queries; ++i) {
    const T share = sums[i] == 0 ? 0 : 1 / sums[i];
    const T* mixed = scratch.mixed + i * d;
    E* out = job.out + head.out + (first + i) * head.out_stride;
    each(0, d, [=](Index j) { out[j] = stored<E>(mixed[j] * share); });
  }
}

template <class E>
void attention_forward(Workers& workers, const AttentionForward<E>& job) {
  const AttentionShape& shape = job.shape;
  const std::size_t bytes = attention_forward_bytes<E>(shape, 1);
  const Index tiles = (shape.tokens + kTileRows - 1) / kTileRows;
  auto share = [&](Index begin, Index end, int thread) {
    Scratch own = Scratch::of_thread(job.workspace, bytes, thread);
    const AttentionScratch<E> scratch = lay_out_attention<E>(own, shape);
    while (begin < end) {
      const Index at = begin / tiles;
      const Head head = head_at(shape, at);
      const Index last = smaller((end - at * tiles) * kTileRows, shape.tokens);
      pack_head(job, head, scratch);
      for (Index query = begin % tiles * kTileRows; query < last; query += kQueries) {
        attend(job, head, query, smaller(kQueries, last - query), scratch);
      }
      begin = (at + 1) * tiles;
    }
  };
  workers.parallel_for(shape.images * shape.heads * tiles, 1, share);
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

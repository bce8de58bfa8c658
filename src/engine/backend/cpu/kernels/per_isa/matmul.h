#pragma once

#include "engine/backend/cpu/kernels/per_isa/scratch.h"
#include "engine/backend/cpu/kernels/per_isa/tile.h"

// Bound: flops, 2mnk of them. All of b is packed, by all threads, then its tiles with a are
// dealt out in equal numbers. Rows of a are read where they lie; a that is transposed, or bf16
// that is not multiplied as such, is packed by each thread for itself, a block of rows at a
// time, in passes over k of kPackedDepth: blocks and panels of wgrads, whose k is all tokens of
// a batch, would fall out of the cache otherwise.
//
// Rejected: each thread packing its own part of b too. That is one barrier less, and no faster:
// 79, 74, 79 and 73 GFLOP/s of vit_tiny's four products of one image against 79, 79, 74 and 84
// on one core of a Zen 3 that others used too. Splitting k over threads: sums would depend on
// their number.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

inline constexpr Index kPackedDepth = 512;
inline constexpr Index kWholeDepth = 3072;        // of rows in place: panels of 200 KB
inline constexpr Index kPackedNumbers = 1 << 22;  // of b at a time

/// Whether rows of a can be read where they lie.
template <class E>
bool has_rows_in_place(const Matmul<E>& job) {
  const Index together = static_cast<Index>(sizeof(Packed<E>) / sizeof(E));
  return kReadsInPlace<E> && !job.a_transposed && job.k % together == 0 &&
         job.a_stride % together == 0;
}

/// One pass over a part of k, and the panels of b that are packed for it.
struct MatmulPass {
  Index k, depth;
  Index column, columns;
  bool is_first, is_last;
};

/// How far passes reach.
struct MatmulSteps {
  Index depth, columns;
};

template <class E>
MatmulSteps steps_of_passes(const Matmul<E>& job) {
  using T = Real<E>;
  const Index depth = smaller(has_rows_in_place(job) ? kWholeDepth : kPackedDepth, job.k);
  const Index most = kPackedNumbers / larger(1, depth) / kTileColumns<T> * kTileColumns<T>;
  return {larger(1, depth),
          smaller(larger(kTileColumns<T>, most), rounded_up(job.n, kTileColumns<T>))};
}

template <class E>
struct MatmulScratch {
  Packed<E>* b;      // the panels of a pass
  Packed<E>* few;    // by thread: a tile of rows
  Packed<E>* block;  // by thread: packed rows
  Real<E>* sums;     // [m, n] between passes, where c cannot hold them
};

template <class E>
MatmulScratch<E> lay_out_matmul(Scratch& scratch,
                                const Matmul<E>& job,
                                int threads,
                                Index cache) {
  using T = Real<E>;
  using P = Packed<E>;
  const MatmulSteps most = steps_of_passes(job);
  const Index steps = steps_of<P>(most.depth);
  const TileOrder tiles = tile_order<T>(job.m, job.n, steps, cache);
  const bool in_place = has_rows_in_place(job);
  const bool keeps_sums = !std::is_same_v<E, T> && most.depth < job.k;
  return {.b = scratch.take<P>(most.columns * steps),
          .few = scratch.take<P>(in_place ? threads * kTileRows * steps : 0),
          .block = scratch.take<P>(in_place ? 0 : threads * tiles.block * kTileRows * steps),
          .sums = scratch.take<T>(keeps_sums ? job.m * job.n : 0)};
}

template <class E>
std::size_t matmul_bytes(const Workers& workers, const Matmul<E>& job) {
  Scratch scratch{nullptr};
  lay_out_matmul<E>(scratch, job, workers.threads(), workers.cache());
  return scratch.bytes(1);
}

/// Rows of a tile of c from its sums: bias or earlier passes added, stored as an element or
/// kept as a number.
template <class E>
void store_tile_row(const Matmul<E>& job,
                    const MatmulPass& pass,
                    const MatmulScratch<E>& scratch,
                    const Real<E>* sums,
                    Index row,
                    Index column) {
  using T = Real<E>;
  const Index count = smaller(kTileColumns<T>, job.n - column);
  E* c = job.c + row * job.c_stride + column;
  T* kept = nullptr;
  if constexpr (std::is_same_v<E, T>) {
    kept = c;
  } else {
    kept = scratch.sums + row * job.n + column;
  }
  const T* bias = job.bias != nullptr ? job.bias + column : nullptr;
  const auto before = [=](Index j) {
    return !pass.is_first ? kept[j] : bias != nullptr ? bias[j] : T(0);
  };
  if (!pass.is_last) {
    each(0, count, [=](Index j) { kept[j] = before(j) + sums[j]; });
  } else if (pass.is_first && bias == nullptr) {
    each(0, count, [=](Index j) { c[j] = stored<E>(sums[j]); });
  } else {
    each(0, count, [=](Index j) { c[j] = stored<E>(before(j) + sums[j]); });
  }
}

/// What a thread has of a: where its rows lie, or the block that it packed last.
template <class E>
class MatmulRows {
 public:
  using P = Packed<E>;
  MatmulRows(const Matmul<E>& job, const MatmulPass& pass, P* few, P* block)
      : job_(job), pass_(pass), few_(few), block_(block), steps_(steps_of<P>(pass.depth)) {}

  /// The sums of a tile.
  void multiply(const TileOrder& tiles,
                const TileOrder::Place& place,
                const P* panel,
                Real<E> (*sums)[kTileColumns<Real<E>>]) {
    using T = Real<E>;
    const Index row = place.row_tile * kTileRows;
    if (has_rows_in_place(job_)) {
      const Index stride = job_.a_stride / kTogether;
      const P* first = reinterpret_cast<const P*>(job_.a + row * job_.a_stride + pass_.k);
      const TileRows<P> a = filled_tile(TileRows<P>{first, stride},
                                        smaller(kTileRows, job_.m - row), steps_, few_);
      tile_sums<T, Left::rows>(a.first, a.stride, panel, steps_, sums);
      return;
    }
    if (place.first != packed_) {
      pack_block(place.first, tiles.block);
    }
    tile_sums<T, Left::steps>(block_ + (place.row_tile - place.first) * kTileRows * steps_,
                              Index{kTileRows}, panel, steps_, sums);
  }

 private:
  static constexpr Index kTogether = static_cast<Index>(sizeof(P) / sizeof(E));

  void pack_block(Index first, Index tiles) {
    const Index row = first * kTileRows;
    const Index rows = smaller(tiles * kTileRows, job_.m - row);
    const Index across = job_.a_transposed ? 1 : job_.a_stride;
    const Index along = job_.a_transposed ? job_.a_stride : 1;
    pack_stored<kTileRows>(Operand<E>{job_.a + row * across + pass_.k * along, across, along},
                           rows, pass_.depth, block_);
    packed_ = first;
  }

  const Matmul<E>& job_;
  const MatmulPass& pass_;
  P* few_;
  P* block_;
  Index steps_;
  Index packed_ = -1;
};

template <class E>
void pack_columns(Workers& workers,
                  const Matmul<E>& job,
                  const MatmulPass& pass,
                  Packed<E>* to) {
  constexpr Index kColumns = kTileColumns<Real<E>>;
  const Index steps = steps_of<Packed<E>>(pass.depth);
  const Index across = job.b_transposed ? job.b_stride : 1;
  const Index along = job.b_transposed ? 1 : job.b_stride;
  const Index panels = (pass.columns + kColumns - 1) / kColumns;
  workers.parallel_for(panels, 1, [&](Index begin, Index end, int) {
    const Index first = begin * kColumns;
    const Index count = smaller(end * kColumns, pass.columns) - first;
    const E* from = job.b + (pass.column + first) * across + pass.k * along;
    pack_stored<kColumns>(Operand<E>{from, across, along}, count, pass.depth,
                          to + first * steps);
  });
}

template <class E>
void multiply_pass(Workers& workers,
                   const Matmul<E>& job,
                   const MatmulPass& pass,
                   const MatmulScratch<E>& scratch) {
  using T = Real<E>;
  using P = Packed<E>;
  pack_columns(workers, job, pass, scratch.b);
  const Index steps = steps_of<P>(pass.depth);
  const Index most = steps_of<P>(steps_of_passes(job).depth);
  TileOrder tiles = tile_order<T>(job.m, pass.columns, most, workers.cache());
  workers.parallel_in_turns(tiles.count(), [&](Index begin, Index end, int thread) {
    MatmulRows<E> a(job, pass, scratch.few + thread * kTileRows * most,
                    scratch.block + thread * tiles.block * kTileRows * most);
    T sums[kTileRows][kTileColumns<T>];
    for (Index at = begin; at < end; ++at) {
      const TileOrder::Place place = tiles.place(at);
      const Index column = place.panel * kTileColumns<T>;
      a.multiply(tiles, place, scratch.b + column * steps, sums);
      const Index row = place.row_tile * kTileRows;
      for (Index i = 0; i < smaller(kTileRows, job.m - row); ++i) {
        store_tile_row(job, pass, scratch, sums[i], row + i, pass.column + column);
      }
    }
  });
}

template <class E>
void matmul(Workers& workers, const Matmul<E>& job) {
  if (job.m == 0 || job.n == 0) {
    return;
  }
  Scratch own(job.workspace);
  const MatmulScratch<E> scratch =
      lay_out_matmul<E>(own, job, workers.threads(), workers.cache());
  const MatmulSteps most = steps_of_passes(job);
  for (Index column = 0; column < job.n; column += most.columns) {
    const Index columns = smaller(most.columns, job.n - column);
    Index k = 0;
    do {
      const Index depth = smaller(most.depth, job.k - k);
      multiply_pass(workers, job,
                    MatmulPass{k, depth, column, columns, k == 0, k + depth == job.k}, scratch);
      k += depth;
    } while (k < job.k);
  }
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

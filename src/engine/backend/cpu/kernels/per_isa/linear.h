#pragma once

#include "engine/backend/cpu/kernels/per_isa/elementary.h"
#include "engine/backend/cpu/kernels/per_isa/scratch.h"
#include "engine/backend/cpu/kernels/per_isa/tile.h"

// Bound: flops for many rows, the bytes of the weights for few. The weights lie in panels
// already, so that they are read once, in order, and nothing is copied but the rows of x that a
// tile cannot broadcast from where they are: bf16 without pairs, and fewer rows than a tile
// has.
//
// Tiles are dealt out in equal numbers. One image of vit_tiny makes 198 tiles of 6 rows for the
// smallest of its products, which 8 threads share to within one.
//
// Bias and GELU are applied to the tile before it is stored: GELU to what would have been
// stored without it, so that the bits are those of two kernels.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// A tile row's worth of x per thread, and all of x as numbers where it cannot be read in
/// place.
template <class E>
struct LinearScratch {
  Packed<E>* rows;
  Real<E>* numbers;
};

template <class E>
LinearScratch<E> lay_out_linear(Scratch& scratch, Index rows, Index width, int threads) {
  using P = Packed<E>;
  LinearScratch<E> all{};
  all.rows = scratch.take<P>(threads * kTileRows * steps_of<P>(width));
  if constexpr (!kReadsInPlace<E>) {
    all.numbers = scratch.take<Real<E>>(rows * width);
  }
  return all;
}

template <class E>
std::size_t linear_bytes(Index rows, Index width, int threads) {
  Scratch scratch(nullptr);
  lay_out_linear<E>(scratch, rows, width, threads);
  return scratch.bytes(1);
}

/// A row of a tile to where it belongs. Panels are whole: so is every row of a tile.
template <class E>
void store_linear(const Linear<E>& job, const Real<E>* sums, Index row, Index column) {
  using T = Real<E>;
  constexpr Index kColumns = kTileColumns<T>;
  const T* bias = job.bias != nullptr ? job.bias + column : nullptr;
  E* y = job.y + row * job.features + column;
  if (bias == nullptr) {
    each(0, kColumns, [=](Index j) { y[j] = stored<E>(sums[j]); });
  } else if (!job.gelu) {
    each(0, kColumns, [=](Index j) { y[j] = stored<E>(sums[j] + bias[j]); });
  } else {
    each(0, kColumns, [=](Index j) {
      const T x = real(stored<E>(sums[j] + bias[j]));
      y[j] = stored<E>(x * normal_cdf(x));
    });
  }
}

template <class E>
const Packed<E>* readable_rows(Workers& workers, const Linear<E>& job, Real<E>* numbers) {
  if constexpr (kReadsInPlace<E>) {
    return reinterpret_cast<const Packed<E>*>(job.x);
  } else {
    workers.parallel_for(job.rows * job.width, Index{1} << 12,
                         [&](Index begin, Index end, int) {
                           const E* x = job.x;
                           each(begin, end, [=](Index i) { numbers[i] = real(x[i]); });
                         });
    return numbers;
  }
}

/// Has this tile's share of the panel that follows come nearer: what is read once in a step
/// does not stay in the cache until the next, and a panel's first tile would wait for it.
template <class B>
void fetch_next_panel(const B* panel, Index elements, Index tile, Index tiles) {
  const Index bytes = elements * static_cast<Index>(sizeof(B));
  const auto* next = reinterpret_cast<const std::byte*>(panel) + bytes;
  for (Index at = bytes * tile / tiles / 64 * 64; at < bytes * (tile + 1) / tiles; at += 64) {
    __builtin_prefetch(next + at, 0, 2);
  }
}

template <class E>
void linear(Workers& workers, const Linear<E>& job) {
  using T = Real<E>;
  using P = Packed<E>;
  Scratch scratch(job.workspace);
  const LinearScratch<E> own =
      lay_out_linear<E>(scratch, job.rows, job.width, workers.threads());
  const P* x = readable_rows(workers, job, own.numbers);
  const Index steps = steps_of<P>(job.width);
  const TileOrder tiles = tile_order<T>(job.rows, job.features, steps, workers.cache());
  // Pairs lie in the panels as they are stored; else the panels' elements are numbers, or bf16.
  using B = std::conditional_t<std::is_same_v<P, Pair>, Pair, E>;
  const B* panels = reinterpret_cast<const B*>(job.panels);
  workers.parallel_in_turns(tiles.count(), [&](Index begin, Index end, int thread) {
    P* copy = own.rows + thread * kTileRows * steps;
    T sums[kTileRows][kTileColumns<T>];
    for (Index at = begin; at < end; ++at) {
      const TileOrder::Place place = tiles.place(at);
      const Index row = place.row_tile * kTileRows;
      const Index column = place.panel * kTileColumns<T>;
      const Index rows = smaller(kTileRows, job.rows - row);
      const TileRows<P> a = filled_tile(TileRows<P>{x + row * steps, steps}, rows, steps, copy);
      const B* panel = panels + column * steps;
      fetch_next_panel(panel, steps * kTileColumns<T>, place.row_tile - place.first,
                       smaller(tiles.block, tiles.row_tiles - place.first));
      tile_sums<T, Left::rows>(a.first, a.stride, panel, steps, sums);
      for (Index i = 0; i < rows; ++i) {
        store_linear(job, sums[i], row + i, column);
      }
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

#pragma once

#include "engine/backend/cpu/kernels/per_isa/scratch.h"
#include "engine/backend/cpu/kernels/per_isa/tile.h"

// Bound: flops, 2mnk of them; a block of c is computed by one thread in passes of kDepth, each
// packing its part of a and b into L2 (192 and 256 KB of floats).
//
// A thread packs for itself what it multiplies. That reads and writes each number of b once for
// every kBlockRows rows of c, some percent of the time, and in return there is one loop over
// independent blocks, no barrier, and a workspace that does not grow with the matrices.
// Rejected: packing all of a once (a workspace of m k: 38 MB at batch 64), and splitting k over
// threads (sums would depend on their number).
//
// Measured, 2 cores of an EPYC Zen 4 (AVX-512), 394x768x3072 float: see the room's README.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

inline constexpr Index kDepth = 256;
inline constexpr Index kBlockRows = 192;  // a multiple of every kTileRows
inline constexpr Index kMostBlockColumns = 512;

template <class E>
struct MatmulScratch {
  Packed<E>* a;
  Packed<E>* b;
};

template <class E>
MatmulScratch<E> lay_out_matmul(Scratch& scratch) {
  using P = Packed<E>;
  return {scratch.take<P>(kBlockRows * steps_of<P>(kDepth)),
          scratch.take<P>(kMostBlockColumns * steps_of<P>(kDepth))};
}

template <class E>
std::size_t matmul_bytes(int threads) {
  Scratch scratch{nullptr};
  lay_out_matmul<E>(scratch);
  return scratch.bytes(threads);
}

/// One block of c: rows from `row`, columns from `column`.
struct Block {
  Index row, rows, column, columns;
};

/// What the sums are added to: the bias, or zeros where no step of k writes c.
template <class E>
void begin_block(const Matmul<E>& job, const Block& block) {
  for (Index i = block.row; i < block.row + block.rows; ++i) {
    Real<E>* c = job.c + i * job.c_stride;
    for (Index j = block.column; j < block.column + block.columns; ++j) {
      const Real<E> bias = job.bias != nullptr ? job.bias[j] : 0;
      c[j] = job.accumulate ? c[j] + bias : bias;
    }
  }
}

template <class E>
void multiply_block(const Matmul<E>& job, const Block& block, MatmulScratch<E> scratch) {
  using T = Real<E>;
  const Operand<E> a = job.a_transposed
                           ? Operand<E>{job.a + block.row, 1, job.a_stride}
                           : Operand<E>{job.a + block.row * job.a_stride, job.a_stride, 1};
  const Operand<E> b = job.b_transposed
                           ? Operand<E>{job.b + block.column * job.b_stride, job.b_stride, 1}
                           : Operand<E>{job.b + block.column, 1, job.b_stride};
  const bool begun = job.bias != nullptr || job.k == 0;
  if (begun) {
    begin_block(job, block);
  }
  for (Index k = 0; k < job.k; k += kDepth) {
    const Index depth = smaller(kDepth, job.k - k);
    pack_stored<kTileRows>(Operand<E>{a.data + k * a.along, a.across, a.along}, block.rows,
                           depth, scratch.a);
    pack_stored<kTileColumns<T>>(Operand<E>{b.data + k * b.along, b.across, b.along},
                                 block.columns, depth, scratch.b);
    multiply(Product<T, Packed<E>>{.m = block.rows,
                                   .n = block.columns,
                                   .depth = steps_of<Packed<E>>(depth),
                                   .a = scratch.a,
                                   .b = scratch.b,
                                   .c = job.c + block.row * job.c_stride + block.column,
                                   .c_stride = job.c_stride,
                                   .accumulate = k > 0 || begun || job.accumulate});
  }
}

template <class E>
void matmul(Workers& workers, const Matmul<E>& job) {
  using T = Real<E>;
  const Index row_blocks = (job.m + kBlockRows - 1) / kBlockRows;
  // Blocks of like size, in tiles, and enough of them for each thread to get a few.
  const Index wanted = (Index{4} * workers.threads() + row_blocks - 1) / larger(1, row_blocks);
  const Index rows = rounded_up((job.m + row_blocks - 1) / larger(1, row_blocks), kTileRows);
  const Index columns =
      smaller(kMostBlockColumns, rounded_up((job.n + wanted - 1) / wanted, kTileColumns<T>));
  if (job.m == 0 || job.n == 0) {
    return;
  }
  const Index column_blocks = (job.n + columns - 1) / columns;
  workers.parallel_for(row_blocks * column_blocks, 1, [&](Index begin, Index end, int thread) {
    Scratch scratch = Scratch::of_thread(job.workspace, matmul_bytes<E>(1), thread);
    const MatmulScratch<E> own = lay_out_matmul<E>(scratch);
    for (Index at = begin; at < end; ++at) {
      const Index row = at / column_blocks * rows;
      const Index column = at % column_blocks * columns;
      multiply_block(
          job, Block{row, smaller(rows, job.m - row), column, smaller(columns, job.n - column)},
          own);
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

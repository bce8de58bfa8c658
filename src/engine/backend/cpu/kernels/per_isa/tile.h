#pragma once

#include "engine/backend/cpu/kernels/per_isa/numbers.h"

// The heart of matmul and attention: a tile of c, kTileRows x kTileColumns, stays in registers
// while k passes; a step of k loads two vectors of b and broadcasts one number of a for each
// row.
//
// Bound: flops. With r rows a step is 2r multiply-adds for 2 + r loads. Zen 4 does one
// multiply-add and one load of 512 bits a cycle, so 12 rows leave the loads half idle; 24 sums,
// 2 vectors of b and one broadcast are 27 of 32 registers. With 16 registers (AVX2) the same
// count gives 6 rows, and 4 where a product needs a register of its own (SSE2).
//
// Both operands are packed first: panels of as many rows of a (columns of b) as a tile has,
// step by step of k, so that the loop reads both in order. Without packing, 12 rows whose
// stride is a multiple of 4096 bytes, as 768 floats times 4 are, fall into one set of the L1
// cache.
//
// All tiles are computed alike, those at an edge with zeros packed beside the operands and the
// superfluous results dropped: a row's bits do not depend on which tile it falls into.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

inline constexpr int kVectorBytes = HALFWATT_VECTOR_BYTES;
inline constexpr int kTileRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <class T>
inline constexpr int kTileColumns = 2 * kLanes<T>;

template <class T>
struct VectorOf {
  using Type [[gnu::vector_size(kVectorBytes)]] = T;
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
Vector<T> load(const T* from) {
  Vector<T> vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class T>
void store(T* to, Vector<T> vector) {
  __builtin_memcpy(to, &vector, sizeof vector);
}

/// A matrix to be packed: entry (i, k) is data[i * across + k * along], with i the row of a or
/// the column of b.
template <class E>
struct Operand {
  const E* data;
  Index across, along;
};

/// Panels of `Width` entries by `depth` steps: to[panel][k][i], zeros where `count` ends;
/// rounded_up(count, Width) * depth numbers in all, each times `factor`.
template <int Width, class E>
void pack(const Operand<E>& from, Index count, Index depth, Real<E> factor, Real<E>* to) {
  for (Index first = 0; first < count; first += Width) {
    const E* panel = from.data + first * from.across;
    const Index valid = smaller(Width, count - first);
    for (Index k = 0; k < depth; ++k, to += Width) {
      const E* step = panel + k * from.along;
      if (valid < Width) {
        for (Index i = 0; i < Width; ++i) {
          to[i] = i < valid ? factor * real(step[i * from.across]) : 0;
        }
      } else if (from.across == 1) {
        for (int i = 0; i < Width; ++i) {
          to[i] = factor * real(step[i]);
        }
      } else {
        for (int i = 0; i < Width; ++i) {
          to[i] = factor * real(step[i * from.across]);
        }
      }
    }
  }
}

/// c [m, n] (+)= a b, both packed `depth` deep.
template <class T>
struct Product {
  Index m, n, depth;
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  Index c_stride;
  bool accumulate = false;
};

/// One tile: sums over k into the `rows` x `columns` of c that there are.
template <class T>
void tile(const Product<T>& product, const T* a, const T* b, Index rows, Index columns, T* c) {
  Vector<T> sums[kTileRows][2] = {};
  for (Index k = 0; k < product.depth; ++k) {
    const Vector<T> left = load(b);
    const Vector<T> right = load(b + kLanes<T>);
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
      sums[i][0] += a[i] * left;
      sums[i][1] += a[i] * right;
    }
    a += kTileRows;
    b += kTileColumns<T>;
  }
  if (rows == kTileRows && columns == kTileColumns<T>) {
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i, c += product.c_stride) {
      store(c, product.accumulate ? load(c) + sums[i][0] : sums[i][0]);
      T* rest = c + kLanes<T>;
      store(rest, product.accumulate ? load(rest) + sums[i][1] : sums[i][1]);
    }
    return;
  }
  T spilled[kTileRows][kTileColumns<T>];
  __builtin_memcpy(spilled, sums, sizeof spilled);
  for (Index i = 0; i < rows; ++i, c += product.c_stride) {
    for (Index j = 0; j < columns; ++j) {
      c[j] = product.accumulate ? c[j] + spilled[i][j] : spilled[i][j];
    }
  }
}

/// All tiles, a panel of a staying in the L1 cache while those of b pass from L2.
template <class T>
void multiply(const Product<T>& product) {
  for (Index i = 0; i < product.m; i += kTileRows) {
    const T* a = product.a + i * product.depth;
    const Index rows = smaller(kTileRows, product.m - i);
    for (Index j = 0; j < product.n; j += kTileColumns<T>) {
      tile(product, a, product.b + j * product.depth, rows,
           smaller(kTileColumns<T>, product.n - j), product.c + i * product.c_stride + j);
    }
  }
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

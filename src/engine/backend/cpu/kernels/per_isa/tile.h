#pragma once

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

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
// Where there are instructions for it (avx512_bf16), both operands bf16 as they are stored are
// packed as pairs of two steps of k, and a step is one VDPBF16PS for each vector of sums: twice
// the flops. Products of two bf16 are exact in fp32, so only the order of the sums differs;
// numbers below 2^-126, operands and sums, count as zero there.
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

/// Two bf16 that follow each other along k, the first in the low half.
struct [[gnu::may_alias]] Pair {
  std::uint32_t bits;
};

#if defined(__AVX512BF16__)
inline constexpr bool kHasPairs = true;
#else
inline constexpr bool kHasPairs = false;
#endif

/// What elements stored as `E` are packed as where nothing is to be done to them.
template <class E>
using Packed = std::conditional_t<kHasPairs && sizeof(E) == sizeof(Bf16), Pair, Real<E>>;

/// Steps of the loop over `depth` numbers that are packed as `P`.
template <class P>
constexpr Index steps_of(Index depth) {
  return std::is_same_v<P, Pair> ? (depth + 1) / 2 : depth;
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

/// The same of elements as they are stored, in `steps_of` steps: numbers, or pairs of them,
/// zero behind an odd last one.
template <int Width, class E>
void pack_stored(const Operand<E>& from, Index count, Index depth, Packed<E>* to) {
  if constexpr (std::is_same_v<Packed<E>, Pair>) {
    for (Index first = 0; first < count; first += Width) {
      const E* panel = from.data + first * from.across;
      const Index valid = smaller(Width, count - first);
      for (Index k = 0; k < depth; k += 2, to += Width) {
        const E* step = panel + k * from.along;
        const Index next = k + 1 < depth ? from.along : 0;
        const std::uint32_t keep = k + 1 < depth ? 0xffff0000U : 0;
        if (valid == Width && from.across == 1) {
          each(0, Width, [=](Index i) {
            to[i].bits = (static_cast<std::uint32_t>(step[i + next]) << 16 & keep) | step[i];
          });
          continue;
        }
        if (valid == Width && next == 1) {  // they lie as a pair
          for (int i = 0; i < Width; ++i) {
            __builtin_memcpy(to + i, step + i * from.across, sizeof *to);
          }
          continue;
        }
        for (Index i = 0; i < Width; ++i) {
          const Index at = (i < valid ? i : 0) * from.across;
          const std::uint32_t high = static_cast<std::uint32_t>(step[at + next]) << 16 & keep;
          to[i].bits = i < valid ? high | step[at] : 0;
        }
      }
    }
  } else {
    pack<Width>(from, count, depth, Real<E>(1), to);
  }
}

/// c [m, n] (+)= a b, both packed as `P` in `depth` steps.
template <class T, class P = T>
struct Product {
  Index m, n, depth;
  const P* a = nullptr;
  const P* b = nullptr;
  T* c = nullptr;
  Index c_stride;
  bool accumulate = false;
};

/// sum + a b, a one number (or pair) for all lanes.
template <class T, class P>
Vector<T> multiplied_and_added(P a, const P* b, Vector<T> sum) {
#if defined(__AVX512BF16__)
  if constexpr (std::is_same_v<P, Pair>) {
    const __m512i pairs = _mm512_loadu_si512(b);
    const __m512i left = _mm512_set1_epi32(static_cast<int>(a.bits));
    return _mm512_dpbf16_ps(sum, __builtin_bit_cast(__m512bh, left),
                            __builtin_bit_cast(__m512bh, pairs));
  } else {
    return sum + a * load(b);
  }
#else
  return sum + a * load(b);
#endif
}

/// One tile: sums over k into the `rows` x `columns` of c that there are.
template <class T, class P>
void tile(
    const Product<T, P>& product, const P* a, const P* b, Index rows, Index columns, T* c) {
  Vector<T> sums[kTileRows][2] = {};
  for (Index k = 0; k < product.depth; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
      sums[i][0] = multiplied_and_added<T>(a[i], b, sums[i][0]);
      sums[i][1] = multiplied_and_added<T>(a[i], b + kLanes<T>, sums[i][1]);
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
template <class T, class P>
void multiply(const Product<T, P>& product) {
  for (Index i = 0; i < product.m; i += kTileRows) {
    const P* a = product.a + i * product.depth;
    const Index rows = smaller(kTileRows, product.m - i);
    for (Index j = 0; j < product.n; j += kTileColumns<T>) {
      tile(product, a, product.b + j * product.depth, rows,
           smaller(kTileColumns<T>, product.n - j), product.c + i * product.c_stride + j);
    }
  }
}

/// Whether rows stored as `E` can be multiplied from where they lie, as Packed<E>.
template <class E>
inline constexpr bool kReadsInPlace = sizeof(E) != sizeof(Bf16) || kHasPairs;

/// Two vectors of a panel of numbers, or of bf16 that become numbers.
template <class T, class B>
void load_two(const B* from, Vector<T>& first, Vector<T>& second) {
  if constexpr (sizeof(B) == sizeof(Bf16)) {
    using Narrow [[gnu::vector_size(kVectorBytes / 2)]] = Bf16;
    using Wide [[gnu::vector_size(kVectorBytes)]] = std::uint32_t;
    Narrow half[2];
    __builtin_memcpy(half, from, sizeof half);
    first = __builtin_bit_cast(Vector<T>, __builtin_convertvector(half[0], Wide) << 16);
    second = __builtin_bit_cast(Vector<T>, __builtin_convertvector(half[1], Wide) << 16);
  } else {
    first = load(from);
    second = load(from + kLanes<T>);
  }
}

/// How the left side of a tile lies: row by row, entry (i, k) of it at i * stride + k, or step
/// by step, at k * stride + i.
enum class Left { rows, steps };

/// Sums over `steps` of k of a tile with a panel of pairs, numbers or bf16.
template <class T, Left kLeft, class P, class B>
void tile_sums(
    const P* a, Index stride, const B* panel, Index steps, T (*sums)[kTileColumns<T>]) {
  const Index across = kLeft == Left::rows ? stride : 1;
  const Index along = kLeft == Left::rows ? 1 : stride;
  Vector<T> own[kTileRows][2] = {};
  for (Index k = 0; k < steps; ++k, a += along, panel += kTileColumns<T>) {
    if constexpr (std::is_same_v<P, Pair>) {
#pragma GCC unroll 12
      for (int i = 0; i < kTileRows; ++i) {
        own[i][0] = multiplied_and_added<T>(a[i * across], panel, own[i][0]);
        own[i][1] = multiplied_and_added<T>(a[i * across], panel + kLanes<T>, own[i][1]);
      }
    } else {
      Vector<T> first;
      Vector<T> second;
      load_two<T>(panel, first, second);
#pragma GCC unroll 12
      for (int i = 0; i < kTileRows; ++i) {
        own[i][0] += a[i * across] * first;
        own[i][1] += a[i * across] * second;
      }
    }
  }
  __builtin_memcpy(sums, own, sizeof own);
}

/// Rows of a tile, `stride` apart.
template <class P>
struct TileRows {
  const P* first;
  Index stride;
};

/// Where `rows` rows of `steps` lie, if they fill a tile, else a copy of them: the first one
/// stands where one is missing.
template <class P>
TileRows<P> filled_tile(TileRows<P> from, Index rows, Index steps, P* copy) {
  if (rows == kTileRows) {
    return from;
  }
  for (Index i = 0; i < kTileRows; ++i) {
    __builtin_memcpy(copy + i * steps, from.first + (i < rows ? i : 0) * from.stride,
                     static_cast<std::size_t>(steps) * sizeof(P));
  }
  return {copy, steps};
}

/// c [m, n] = a b, the rows of a where they lie and b packed, in `steps` of k.
template <class T, class P>
struct RowProduct {
  Index m, n, steps;
  TileRows<P> a;
  const P* b;
  T* c;
  Index c_stride;
  P* copy;  ///< kTileRows * steps
};

template <class T, class P>
void multiply_rows(const RowProduct<T, P>& product) {
  T sums[kTileRows][kTileColumns<T>];
  for (Index i = 0; i < product.m; i += kTileRows) {
    const Index rows = smaller(kTileRows, product.m - i);
    const TileRows<P> a =
        filled_tile({product.a.first + i * product.a.stride, product.a.stride}, rows,
                    product.steps, product.copy);
    for (Index j = 0; j < product.n; j += kTileColumns<T>) {
      tile_sums<T, Left::rows>(a.first, a.stride, product.b + j * product.steps, product.steps,
                               sums);
      const Index columns = smaller(kTileColumns<T>, product.n - j);
      for (Index row = 0; row < rows; ++row) {
        T* c = product.c + (i + row) * product.c_stride + j;
        if (columns == kTileColumns<T>) {
          __builtin_memcpy(c, sums[row], sizeof sums[row]);
        } else {
          __builtin_memcpy(c, sums[row], static_cast<std::size_t>(columns) * sizeof(T));
        }
      }
    }
  }
}

/// c [m, n] (+)= a^T b, a [steps, m] where it lies, its rows `a_stride` apart and readable up
/// to a whole tile, b packed.
template <class T>
struct ColumnProduct {
  Index m, n, steps;
  const T* a;
  Index a_stride;
  const T* b;
  T* c;
  Index c_stride;
  bool accumulate;
};

template <class T>
void multiply_columns(const ColumnProduct<T>& product) {
  T sums[kTileRows][kTileColumns<T>];
  for (Index i = 0; i < product.m; i += kTileRows) {
    const Index rows = smaller(kTileRows, product.m - i);
    for (Index j = 0; j < product.n; j += kTileColumns<T>) {
      tile_sums<T, Left::steps>(product.a + i, product.a_stride, product.b + j * product.steps,
                                product.steps, sums);
      const Index columns = smaller(kTileColumns<T>, product.n - j);
      for (Index row = 0; row < rows; ++row) {
        T* c = product.c + (i + row) * product.c_stride + j;
        const T* from = sums[row];
        if (product.accumulate) {
          each(0, columns, [=](Index at) { c[at] += from[at]; });
        } else {
          each(0, columns, [=](Index at) { c[at] = from[at]; });
        }
      }
    }
  }
}

/// The tiles of c in the order in which they are computed: block of rows, panel, tile within
/// the block. A block of a stays in the L2 cache while panels pass, a panel in L1 while tiles
/// do.
struct TileOrder {
  Index row_tiles, panels, block;  ///< `block`: tiles of rows in a block
  struct Place {
    Index row_tile, panel, first;  ///< `first`: tile of rows of its block
  };
  Index count() const { return row_tiles * panels; }
  Place place(Index at) const {
    const Index first = at / (panels * block) * block;
    const Index rest = at - first * panels;
    const Index height = smaller(block, row_tiles - first);
    return {first + rest % height, rest / height, first};
  }
};

/// `cache`: bytes of a core's L2 cache, of which a block takes a third, the panels that pass
/// the rest. The larger it is, the fewer times all panels come from further away.
template <class T>
TileOrder tile_order(Index rows, Index columns, Index steps, Index cache) {
  const Index tile_bytes = kTileRows * steps * static_cast<Index>(sizeof(T));
  return {(rows + kTileRows - 1) / kTileRows, (columns + kTileColumns<T> - 1) / kTileColumns<T>,
          larger(1, cache / 3 / larger(1, tile_bytes))};
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

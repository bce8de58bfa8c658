#pragma once

#include "engine/backend/cpu/kernels/per_isa/matmul.h"

// Bound: flops. All three passes are products of an operand that lies in memory as a matrix and
// of one that does not: the patches of an image, [taps, positions], a tap being a channel and a
// place within the kernel. These are packed from the image itself, so that nothing larger than
// a block of matmul is ever laid out. Rejected: writing the patches of a batch first (a
// workspace of kernel_height * kernel_width times the images).
//
// The gradient of the images is the other way round: a block of patches is computed, [taps of
// some channels, positions], and added to where it was taken from. Each channel belongs to one
// thread. Rejected: a convolution of dy with gaps between its numbers, which for a stride of s
// multiplies s^2 - 1 zeros for each number.

namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE {

/// A place in an image: of a position's patch its corner, of a tap what is added to that.
struct Spot {
  Index channel, y, x;
};

inline Spot position(const ConvolutionShape& shape, Index at) {
  return {0, at / shape.out_width * shape.stride - shape.padding,
          at % shape.out_width * shape.stride - shape.padding};
}

inline Spot tap(const ConvolutionShape& shape, Index at) {
  const Index kernel = shape.kernel_height * shape.kernel_width;
  return {at / kernel, at % kernel / shape.kernel_width, at % kernel % shape.kernel_width};
}

using SpotOf = Spot (*)(const ConvolutionShape&, Index);

inline Index taps(const ConvolutionShape& shape) {
  return shape.channels * shape.kernel_height * shape.kernel_width;
}
inline Index positions(const ConvolutionShape& shape) {
  return shape.out_height * shape.out_width;
}

/// A piece of the patches of an image: `count` entries from `first` on, by `depth` steps from
/// `begin` on.
struct Piece {
  Index first, count, begin, depth;
};

/// pack() of a piece, entries being told by `Entry` and steps by `Step`; zeros outside the
/// image.
template <int Width, SpotOf Entry, SpotOf Step, class E>
void pack_patches(const ConvolutionShape& shape, const E* image, const Piece& of, Real<E>* to) {
  Index y[Width];
  Index x[Width];
  Index places[Width];
  for (Index first = of.first; first < of.first + of.count; first += Width) {
    for (Index i = 0; i < Width; ++i) {
      const bool is_there = first + i < of.first + of.count;
      const Spot entry = Entry(shape, is_there ? first + i : first);
      y[i] = is_there ? entry.y : -(shape.height + shape.kernel_height);  // outside for sure
      x[i] = entry.x;
      places[i] = (entry.channel * shape.height + entry.y) * shape.width + entry.x;
    }
    for (Index k = of.begin; k < of.begin + of.depth; ++k, to += Width) {
      const Spot step = Step(shape, k);
      const Index place = (step.channel * shape.height + step.y) * shape.width + step.x;
      for (int i = 0; i < Width; ++i) {
        const Index row = y[i] + step.y;
        const Index column = x[i] + step.x;
        const bool inside =
            row >= 0 && row < shape.height && column >= 0 && column < shape.width;
        to[i] = inside ? real(image[places[i] + place]) : 0;
      }
    }
  }
}

inline constexpr Index kDepth = 256;
inline constexpr Index kBlockRows = 192;  // a multiple of every kTileRows
inline constexpr Index kMostBlockColumns = 512;

/// One block of c: rows from `row`, columns from `column`.
struct Block {
  Index row, rows, column, columns;
};

/// What a thread packs of both sides for kDepth steps of a block: 192 and 512 KB of floats.
template <class T>
struct BlockScratch {
  T* a;
  T* b;
};

template <class T>
BlockScratch<T> lay_out_block(Scratch& scratch) {
  return {scratch.take<T>(kBlockRows * kDepth), scratch.take<T>(kMostBlockColumns * kDepth)};
}

template <class T>
struct ConvolutionScratch {
  BlockScratch<T> operands;
  T* patches;  ///< of the gradient of the images
};

template <class T>
ConvolutionScratch<T> lay_out_convolution(Scratch& scratch) {
  return {lay_out_block<T>(scratch), scratch.take<T>(kBlockRows * kMostBlockColumns)};
}

template <class T>
std::size_t convolution_bytes(int threads) {
  Scratch scratch{nullptr};
  lay_out_convolution<T>(scratch);
  return scratch.bytes(threads);
}

/// How an [m, n] that is computed `times` times is cut into blocks, a few for each thread. What
/// is summed up in which order does not depend on it.
struct Cut {
  Index rows, columns, row_blocks, column_blocks;

  Block block(Index at, Index m, Index n) const {
    const Index row = at / column_blocks * rows;
    const Index column = at % column_blocks * columns;
    return {row, smaller(rows, m - row), column, smaller(columns, n - column)};
  }
};

template <class T>
Cut cut(Index m, Index n, Index times, int threads) {
  const Index row_blocks = (m + kBlockRows - 1) / kBlockRows;
  const Index there = larger(1, row_blocks * times);
  const Index wanted = (Index{4} * threads + there - 1) / there;
  const Index rows = rounded_up((m + row_blocks - 1) / row_blocks, kTileRows);
  const Index columns =
      smaller(kMostBlockColumns, rounded_up((n + wanted - 1) / wanted, kTileColumns<T>));
  return {rows, columns, (m + rows - 1) / rows, (n + columns - 1) / columns};
}

template <class E>
void convolve_block(const Convolution<E>& job,
                    Index image,
                    const Block& block,
                    BlockScratch<Real<E>> scratch) {
  using T = Real<E>;
  const ConvolutionShape& shape = job.shape;
  const Index width = positions(shape);
  const E* x = job.images + image * shape.channels * shape.height * shape.width;
  T* y = job.y + (image * shape.outputs + block.row) * width + block.column;
  for (Index i = 0; i < block.rows; ++i) {
    const T bias = job.bias != nullptr ? job.bias[block.row + i] : 0;
    for (Index j = 0; j < block.columns; ++j) {
      y[i * width + j] = bias;
    }
  }
  const Index all = taps(shape);
  for (Index k = 0; k < all; k += kDepth) {
    const Index depth = smaller(kDepth, all - k);
    pack<kTileRows>(Operand<E>{job.weights + block.row * all + k, all, 1}, block.rows, depth,
                    T(1), scratch.a);
    pack_patches<kTileColumns<T>, position, tap>(
        shape, x, Piece{block.column, block.columns, k, depth}, scratch.b);
    multiply(Product<T>{.m = block.rows,
                        .n = block.columns,
                        .depth = depth,
                        .a = scratch.a,
                        .b = scratch.b,
                        .c = y,
                        .c_stride = width,
                        .accumulate = true});
  }
}

/// Calls `compute(at, scratch)` for each of `count` independent blocks.
template <class T, class Compute>
void for_blocks(Workers& workers, Index count, std::byte* workspace, Compute compute) {
  workers.parallel_for(count, 1, [&](Index begin, Index end, int thread) {
    Scratch scratch = Scratch::of_thread(workspace, convolution_bytes<T>(1), thread);
    const ConvolutionScratch<T> own = lay_out_convolution<T>(scratch);
    for (Index at = begin; at < end; ++at) {
      compute(at, own);
    }
  });
}

template <class E>
void convolution(Workers& workers, const Convolution<E>& job) {
  using T = Real<E>;
  const Index m = job.shape.outputs;
  const Index n = positions(job.shape);
  if (m == 0 || job.shape.images == 0) {
    return;
  }
  const Cut blocks = cut<T>(m, n, job.shape.images, workers.threads());
  const Index each = blocks.row_blocks * blocks.column_blocks;
  for_blocks<T>(workers, job.shape.images * each, job.workspace,
                [&](Index at, const ConvolutionScratch<T>& own) {
                  convolve_block(job, at / each, blocks.block(at % each, m, n), own.operands);
                });
}

template <class E>
void convolve_weight_block(const ConvolutionWeightGradient<E>& job,
                           const Block& block,
                           BlockScratch<Real<E>> scratch) {
  using T = Real<E>;
  const ConvolutionShape& shape = job.shape;
  const Index width = taps(shape);
  const Index steps = positions(shape);
  T* dweights = job.dweights + block.row * width + block.column;
  for (Index i = 0; i < block.rows; ++i) {
    for (Index j = 0; j < block.columns; ++j) {
      dweights[i * width + j] = 0;
    }
  }
  for (Index image = 0; image < shape.images; ++image) {
    const E* x = job.images + image * shape.channels * shape.height * shape.width;
    const E* dy = job.dy + (image * shape.outputs + block.row) * steps;
    for (Index k = 0; k < steps; k += kDepth) {
      const Index depth = smaller(kDepth, steps - k);
      pack<kTileRows>(Operand<E>{dy + k, steps, 1}, block.rows, depth, T(1), scratch.a);
      pack_patches<kTileColumns<T>, tap, position>(
          shape, x, Piece{block.column, block.columns, k, depth}, scratch.b);
      multiply(Product<T>{.m = block.rows,
                          .n = block.columns,
                          .depth = depth,
                          .a = scratch.a,
                          .b = scratch.b,
                          .c = dweights,
                          .c_stride = width,
                          .accumulate = true});
    }
  }
}

template <class E>
void convolution_weight_gradient(Workers& workers, const ConvolutionWeightGradient<E>& job) {
  using T = Real<E>;
  const Index m = job.shape.outputs;
  const Index n = taps(job.shape);
  if (m == 0 || n == 0) {
    return;
  }
  const Cut blocks = cut<T>(m, n, 1, workers.threads());
  for_blocks<T>(workers, blocks.row_blocks * blocks.column_blocks, job.workspace,
                [&](Index at, const ConvolutionScratch<T>& own) {
                  convolve_weight_block(job, blocks.block(at, m, n), own.operands);
                });
}

/// Adds a block of patches, [taps, positions], to the image that they are of.
template <class T>
void add_patches(const ConvolutionShape& shape,
                 const T* patches,
                 const Block& block,
                 T* image) {
  for (Index i = 0; i < block.rows; ++i, patches += block.columns) {
    const Spot of = tap(shape, block.row + i);
    T* channel = image + of.channel * shape.height * shape.width;
    const Spot first = position(shape, block.column);
    Index y = first.y + of.y;
    Index x = first.x + of.x;
    const Index row_end = of.x - shape.padding + shape.out_width * shape.stride;
    for (Index j = 0; j < block.columns; ++j) {
      if (y >= 0 && y < shape.height && x >= 0 && x < shape.width) {
        channel[y * shape.width + x] += patches[j];
      }
      x += shape.stride;
      if (x == row_end) {
        x = of.x - shape.padding;
        y += shape.stride;
      }
    }
  }
}

/// The gradient of the patches of one image that `block` says, added to that of the image.
template <class E>
void convolve_input_block(const ConvolutionInputGradient<E>& job,
                          Index image,
                          const Block& block,
                          const ConvolutionScratch<Real<E>>& scratch) {
  using T = Real<E>;
  const ConvolutionShape& shape = job.shape;
  const Index width = positions(shape);
  const Index all = taps(shape);
  const E* dy = job.dy + image * shape.outputs * width + block.column;
  for (Index k = 0; k < shape.outputs; k += kDepth) {
    const Index depth = smaller(kDepth, shape.outputs - k);
    pack<kTileRows>(Operand<E>{job.weights + k * all + block.row, 1, all}, block.rows, depth,
                    T(1), scratch.operands.a);
    pack<kTileColumns<T>>(Operand<E>{dy + k * width, 1, width}, block.columns, depth, T(1),
                          scratch.operands.b);
    multiply(Product<T>{.m = block.rows,
                        .n = block.columns,
                        .depth = depth,
                        .a = scratch.operands.a,
                        .b = scratch.operands.b,
                        .c = scratch.patches,
                        .c_stride = block.columns,
                        .accumulate = k > 0});
  }
  add_patches(shape, scratch.patches, block,
              job.dx + image * shape.channels * shape.height * shape.width);
}

template <class E>
void convolution_input_gradient(Workers& workers, const ConvolutionInputGradient<E>& job) {
  using T = Real<E>;
  const ConvolutionShape& shape = job.shape;
  const Index kernel = shape.kernel_height * shape.kernel_width;
  const Index channels = larger(1, kBlockRows / kernel);  // of a block: some of one, or several
  const Index each = (shape.channels + channels - 1) / channels;
  const Index plane = shape.height * shape.width;
  for_blocks<T>(
      workers, shape.images * each, job.workspace,
      [&](Index at, const ConvolutionScratch<T>& own) {
        const Index image = at / each;
        const Index first = at % each * channels;
        const Index count = smaller(channels, shape.channels - first);
        T* dx = job.dx + (image * shape.channels + first) * plane;
        for (Index i = 0; i < count * plane; ++i) {
          dx[i] = 0;
        }
        const Index last = shape.outputs > 0 ? (first + count) * kernel : 0;
        for (Index row = first * kernel; row < last; row += kBlockRows) {
          const Index rows = smaller(kBlockRows, last - row);
          for (Index column = 0; column < positions(shape); column += kMostBlockColumns) {
            const Index columns = smaller(kMostBlockColumns, positions(shape) - column);
            convolve_input_block(job, image, Block{row, rows, column, columns}, own);
          }
        }
      });
}

template <class E>
void convolution_bias_gradient(Workers& workers, const ConvolutionBiasGradient<E>& job) {
  using T = Real<E>;
  workers.parallel_for(job.outputs, 1, [&](Index begin, Index end, int) {
    for (Index output = begin; output < end; ++output) {
      T all = 0;
      for (Index image = 0; image < job.images; ++image) {
        const E* dy = job.dy + (image * job.outputs + output) * job.positions;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index at = 0; at < job.positions; ++at) {
          sum += real(dy[at]);
        }
        all += sum;
      }
      job.dbias[output] = all;
    }
  });
}

}  // namespace halfwatt::cpu::HALFWATT_ISA_NAMESPACE

#include "engine/backend/cuda/kernels/moves.h"
#include "engine/backend/cuda/kernels/types.cuh"

namespace halfwatt::cuda {
namespace {

__device__ Index from_of(const Runs& runs, Index piece, Index at) {
  return runs.from_at + piece / runs.times * runs.from_step + at;
}

template <class T>
__global__ void move_kernel(const T* from, T* to, Runs runs) {
  each(runs.pieces * runs.length, [&](Index i) {
    const Index piece = i / runs.length;
    const Index at = i % runs.length;
    to[runs.to_at + piece * runs.to_step + at] = from[from_of(runs, piece, at)];
  });
}

__global__ void convert_runs_kernel(Elements from, Elements to, Runs runs) {
  each(runs.pieces * runs.length, [&](Index i) {
    const Index piece = i / runs.length;
    const Index at = i % runs.length;
    store(to, runs.to_at + piece * runs.to_step + at, load(from, from_of(runs, piece, at)));
  });
}

constexpr int kSquare = 32;
constexpr int kRowsOfBlock = 8;

template <class T>
__global__ void transpose_kernel(const T* x, T* y, Index rows, Index columns) {
  __shared__ T square[kSquare][kSquare + 1];
  const Index matrix = Index{blockIdx.z} * rows * columns;
  const Index row = Index{blockIdx.y} * kSquare;
  const Index column = Index{blockIdx.x} * kSquare;
  for (int i = static_cast<int>(threadIdx.y); i < kSquare; i += kRowsOfBlock) {
    if (row + i < rows && column + threadIdx.x < columns) {
      square[i][threadIdx.x] = x[matrix + (row + i) * columns + column + threadIdx.x];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.y); i < kSquare; i += kRowsOfBlock) {
    if (column + i < columns && row + threadIdx.x < rows) {
      y[matrix + (column + i) * rows + row + threadIdx.x] = square[threadIdx.x][i];
    }
  }
}

}  // namespace

void move(Stream stream, Elements from, Elements to, const Runs& runs) {
  const Index count = runs.pieces * runs.length;
  if (count == 0) {
    return;
  }
  if (from.dtype == to.dtype) {
    with_bytes(bytes_of(from.dtype), [&](auto element) {
      using T = decltype(element);
      move_kernel<<<blocks_for(count), kThreads, 0, stream>>>(
          reinterpret_cast<const T*>(from.data), reinterpret_cast<T*>(to.data), runs);
    });
  } else {
    convert_runs_kernel<<<blocks_for(count), kThreads, 0, stream>>>(from, to, runs);
  }
  check_launch("move");
}

void transpose(Stream stream,
               const std::byte* x,
               std::byte* y,
               Index outer,
               Index rows,
               Index columns,
               std::size_t bytes) {
  if (outer * rows * columns == 0) {
    return;
  }
  constexpr Index kMostOuter = 65535;
  const auto squares = [](Index count) {
    return static_cast<unsigned>((count + kSquare - 1) / kSquare);
  };
  with_bytes(bytes, [&](auto element) {
    using T = decltype(element);
    for (Index first = 0; first < outer; first += kMostOuter) {
      const dim3 grid(squares(columns), squares(rows),
                      static_cast<unsigned>(std::min(kMostOuter, outer - first)));
      const Index at = first * rows * columns;
      transpose_kernel<<<grid, dim3(kSquare, kRowsOfBlock), 0, stream>>>(
          reinterpret_cast<const T*>(x) + at, reinterpret_cast<T*>(y) + at, rows, columns);
    }
  });
  check_launch("transpose");
}

}  // namespace halfwatt::cuda

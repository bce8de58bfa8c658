#include "engine/backend/cuda/kernels/rows.h"
#include "engine/backend/cuda/kernels/types.cuh"

// Bound: bytes. A norm is a warp a row, which reads its row three times, twice of them from L1
// or L2. Column sums are two passes: rows in kParts parts, each of which adds its own in order,
// then the parts in order.

namespace halfwatt::cuda {
namespace {

constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr Index kMostParts = 256;

Index parts_of(Index rows) { return std::clamp<Index>(rows / 32, 1, kMostParts); }
__host__ __device__ Index part_begin(Index rows, Index parts, Index part) {
  return rows * part / parts;
}

unsigned warps_for(Index rows) {
  constexpr Index kMostBlocks = 1 << 20;
  return static_cast<unsigned>(
      std::clamp<Index>((rows + kWarpsOfBlock - 1) / kWarpsOfBlock, 1, kMostBlocks));
}

/// Calls `body(row, lane)` for every row by a warp of its own.
template <class Body>
__device__ void each_row(Index rows, Body body) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Index step = Index{gridDim.x} * kWarpsOfBlock;
  for (Index row = Index{blockIdx.x} * kWarpsOfBlock + threadIdx.x / kWarp; row < rows;
       row += step) {
    body(row, lane);
  }
}

template <DType X, DType Residual, DType Y>
__global__ void layer_norm_kernel(LayerNorm job) {
  each_row(job.rows, [&](Index row, int lane) {
    const Index first = row * job.width;
    // With a residual, x is read again from where the sum is stored, by the lane that stored
    // it.
    const std::byte* x = job.x.data;
    if (job.residual.data != nullptr) {
      for (Index j = lane; j < job.width; j += kWarp) {
        store<X>(job.sum.data, first + j,
                 load<X>(job.x.data, first + j) + load<Residual>(job.residual.data, first + j));
      }
      x = job.sum.data;
    }
    float sum = 0;
    for (Index j = lane; j < job.width; j += kWarp) {
      sum += load<X>(x, first + j);
    }
    // The mean of what is left puts right what rounding took: a constant row is exactly beta.
    const float rough = warp_sum(sum) / static_cast<float>(job.width);
    float left = 0;
    for (Index j = lane; j < job.width; j += kWarp) {
      left += load<X>(x, first + j) - rough;
    }
    const float rest = warp_sum(left) / static_cast<float>(job.width);
    const auto from_mean = [&](Index j) { return load<X>(x, first + j) - rough - rest; };
    float squares = 0;
    for (Index j = lane; j < job.width; j += kWarp) {
      const float away = from_mean(j);
      squares += away * away;
    }
    const float variance = warp_sum(squares) / static_cast<float>(job.width);
    const float rstd = 1 / sqrtf(variance + job.epsilon);
    for (Index j = lane; j < job.width; j += kWarp) {
      const float normed = from_mean(j) * rstd;
      store<Y>(job.y.data, first + j, normed * load(job.gamma, j) + load(job.beta, j));
    }
    if (lane == 0) {
      store(job.mean, row, rough + rest);
      store(job.rstd, row, rstd);
    }
  });
}

template <DType Dy, DType X>
__global__ void layer_norm_dx_kernel(LayerNormGradient job) {
  each_row(job.rows, [&](Index row, int lane) {
    const Index first = row * job.width;
    const float mean = load(job.mean, row);
    const float rstd = load(job.rstd, row);
    float sum = 0;
    float along = 0;
    for (Index j = lane; j < job.width; j += kWarp) {
      const float g = load<Dy>(job.dy.data, first + j) * load(job.gamma, j);
      sum += g;
      along += g * ((load<X>(job.x.data, first + j) - mean) * rstd);
    }
    sum = warp_sum(sum) / static_cast<float>(job.width);
    along = warp_sum(along) / static_cast<float>(job.width);
    for (Index j = lane; j < job.width; j += kWarp) {
      const float g = load<Dy>(job.dy.data, first + j) * load(job.gamma, j);
      const float normed = (load<X>(job.x.data, first + j) - mean) * rstd;
      float dx = rstd * (g - sum - normed * along);
      if (job.residual.data != nullptr) {  // rounded twice, as by two kernels
        dx = __fadd_rn(as_stored<X>(dx), load(job.residual, first + j));
      }
      store<X>(job.dx.data, first + j, dx);
    }
  });
}

/// Parts of dgamma and dbeta, [parts, 2, width]: a thread a column, a block a part.
template <DType Dy, DType X>
__global__ void layer_norm_parts_kernel(LayerNormGradient job, Index parts, float* to) {
  const Index column = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  const Index part = blockIdx.y;
  if (column >= job.width) {
    return;
  }
  float gamma = 0;
  float beta = 0;
  const Index end = part_begin(job.rows, parts, part + 1);
  for (Index row = part_begin(job.rows, parts, part); row < end; ++row) {
    const Index at = row * job.width + column;
    const float dy = load<Dy>(job.dy.data, at);
    beta += dy;
    gamma += dy * ((load<X>(job.x.data, at) - load(job.mean, row)) * load(job.rstd, row));
  }
  to[part * 2 * job.width + column] = gamma;
  to[(part * 2 + 1) * job.width + column] = beta;
}

/// y [outer, width] = parts [outer, parts, stride] added in order.
__global__ void add_parts_kernel(
    const float* from, Index outer, Index parts, Index stride, Index width, Elements y) {
  each(outer * width, [&](Index at) {
    const float* const first = from + at / width * parts * stride + at % width;
    float sum = 0;
    for (Index part = 0; part < parts; ++part) {
      sum += first[part * stride];
    }
    store(y, at, sum);
  });
}

template <DType X>
__global__ void sum_parts_kernel(
    const std::byte* x, Index first_outer, Index rows, Index width, Index parts, float* to) {
  const Index column = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  const Index part = blockIdx.y;
  const Index outer = first_outer + blockIdx.z;
  if (column >= width) {
    return;
  }
  float sum = 0;
  const Index end = part_begin(rows, parts, part + 1);
  for (Index row = part_begin(rows, parts, part); row < end; ++row) {
    sum += load<X>(x, (outer * rows + row) * width + column);
  }
  to[(outer * parts + part) * width + column] = sum;
}

__global__ void mean_kernel(Elements x, Elements y, Around around) {
  each(around.outer * around.inner, [&](Index at) {
    const Index outer = at / around.inner;
    const Index inner = at % around.inner;
    float sum = 0;
    for (Index i = 0; i < around.extent; ++i) {
      sum += load(x, (outer * around.extent + i) * around.inner + inner);
    }
    store(y, at, sum / static_cast<float>(around.extent));
  });
}

unsigned columns_of(Index width) {
  return static_cast<unsigned>((width + kThreads - 1) / kThreads);
}

}  // namespace

void layer_norm(Stream stream, const LayerNorm& job) {
  if (job.rows == 0) {
    return;
  }
  const DType residual = job.residual ? job.residual.dtype : job.x.dtype;
  HALFWATT_CHECK(!job.residual || job.sum.dtype == job.x.dtype, "a sum stored as x is");
  with_storage(job.x.dtype, [&](auto x) {
    with_storage(residual, [&](auto other) {
      with_storage(job.y.dtype, [&](auto y) {
        layer_norm_kernel<decltype(x)::kDType, decltype(other)::kDType, decltype(y)::kDType>
            <<<warps_for(job.rows), kThreads, 0, stream>>>(job);
      });
    });
  });
  check_launch("layer_norm");
}

std::size_t layer_norm_gradient_bytes(Index rows, Index width) {
  return static_cast<std::size_t>(parts_of(rows) * 2 * width) * sizeof(float);
}

void layer_norm_gradient(Stream stream, const LayerNormGradient& job) {
  if (job.width == 0) {
    return;
  }
  HALFWATT_CHECK(job.dx.dtype == job.x.dtype, "a gradient stored as x is");
  const Index parts = parts_of(job.rows);
  auto* const sums = reinterpret_cast<float*>(job.workspace);
  with_storage(job.dy.dtype, [&](auto dy) {
    with_storage(job.x.dtype, [&](auto x) {
      constexpr DType kDy = decltype(dy)::kDType;
      constexpr DType kX = decltype(x)::kDType;
      // Before dx, which may lie where dy does.
      const dim3 grid(columns_of(job.width), static_cast<unsigned>(parts));
      layer_norm_parts_kernel<kDy, kX><<<grid, kThreads, 0, stream>>>(job, parts, sums);
      if (job.rows > 0) {
        layer_norm_dx_kernel<kDy, kX><<<warps_for(job.rows), kThreads, 0, stream>>>(job);
      }
    });
  });
  const unsigned blocks = blocks_for(job.width);
  add_parts_kernel<<<blocks, kThreads, 0, stream>>>(sums, 1, parts, 2 * job.width, job.width,
                                                    job.dgamma);
  add_parts_kernel<<<blocks, kThreads, 0, stream>>>(sums + job.width, 1, parts, 2 * job.width,
                                                    job.width, job.dbeta);
  check_launch("layer_norm_gradient");
}

std::size_t sum_rows_bytes(Index outer, Index rows, Index width) {
  return static_cast<std::size_t>(outer * parts_of(rows) * width) * sizeof(float);
}

void sum_rows(Stream stream,
              Elements x,
              Elements y,
              Index outer,
              Index rows,
              Index width,
              std::byte* workspace) {
  const Index parts = parts_of(rows);
  auto* const sums = reinterpret_cast<float*>(workspace);
  if (outer == 0 || width == 0) {
    return;
  }
  constexpr Index kDeepest = 65535;  // of a grid
  with_storage(x.dtype, [&](auto tag) {
    for (Index first = 0; first < outer; first += kDeepest) {
      const dim3 grid(columns_of(width), static_cast<unsigned>(parts),
                      static_cast<unsigned>(std::min(kDeepest, outer - first)));
      sum_parts_kernel<decltype(tag)::kDType>
          <<<grid, kThreads, 0, stream>>>(x.data, first, rows, width, parts, sums);
    }
  });
  add_parts_kernel<<<blocks_for(outer * width), kThreads, 0, stream>>>(sums, outer, parts,
                                                                       width, width, y);
  check_launch("sum_rows");
}

void mean(Stream stream, Elements x, Elements y, const Around& x_around) {
  const Index count = x_around.outer * x_around.inner;
  if (count == 0) {
    return;
  }
  mean_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, y, x_around);
  check_launch("mean");
}

}  // namespace halfwatt::cuda

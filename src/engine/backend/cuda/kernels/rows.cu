#include <algorithm>
#include <initializer_list>

#include "engine/backend/cuda/kernels/rows.h"
#include "engine/backend/cuda/kernels/types.cuh"
#include "engine/backend/cuda/planted.h"

// Bound: bytes. A norm is a warp a row. Where rows are whole eights and fit in the registers of
// a warp, each number is read once; else a row is read three times, twice of them from L1 or
// L2. Sums over rows are two passes: rows in parts, each of which adds its own in order, then
// the parts in order.

namespace halfwatt::cuda {
namespace {

constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr int kColumns = kWarp * kEight;  // of a warp at once

/// Parts of a norm's gradient, each a block: two for each multiprocessor of a large GPU.
Index parts_of_norm(Index rows) {
  constexpr Index kRowsOfWarp = 2;
  constexpr Index kMostParts = 264;
  return std::clamp<Index>(rows / (kRowsOfWarp * kWarpsOfBlock), 1, kMostParts);
}
/// Parts of a sum over rows.
Index parts_of_sum(Index rows, Index width) {
  constexpr Index kRowsOfWarp = 8;
  constexpr Index kMostBlocks = 1056;
  const Index columns = (width + kColumns - 1) / kColumns;
  return std::clamp<Index>(rows / (kRowsOfWarp * kWarpsOfBlock), 1,
                           std::max<Index>(kMostBlocks / columns, 1));
}
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

constexpr int kPartGroups = 16;

/// y [outer, width] = parts [outer, parts, stride] added in order: those of a group, then the
/// groups.
__global__ void add_parts_kernel(
    const float* from, Index parts, Index stride, Index width, Elements y) {
  __shared__ float sums[kPartGroups][kWarp];
  const Index blocks = (width + kWarp - 1) / kWarp;
  const Index outer = blockIdx.x / blocks;
  const Index column = blockIdx.x % blocks * kWarp + threadIdx.x;
  const Index end = part_begin(parts, kPartGroups, threadIdx.y + 1);
  float sum = 0;
  if (column < width) {
    const float* const first = from + outer * parts * stride + column;
#pragma unroll 8
    for (Index part = part_begin(parts, kPartGroups, threadIdx.y); part < end; ++part) {
      sum += first[part * stride];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    for (int group = 1; group < kPartGroups; ++group) {
      sum += sums[group][threadIdx.x];
    }
    store(y, outer * width + column, sum);
  }
}

void add_parts(Stream stream,
               const float* from,
               Index outer,
               Index parts,
               Index stride,
               Index width,
               const Elements& y) {
  const Index blocks = outer * ((width + kWarp - 1) / kWarp);
  HALFWATT_CHECK(blocks < (Index{1} << 31), "sums of a grid");
  add_parts_kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, kPartGroups), 0, stream>>>(
      from, parts - planted(Fault::lost_part), stride, width, y);
}

/// to [width] = what the warps of a block have of it, added in their order. All of the block
/// call it; `shared` has `pitch` numbers for each warp.
template <int kEights>
__device__ void add_warps(const float (&own)[kEights][kEight],
                          Index first_column,
                          Index width,
                          Index pitch,
                          float* shared,
                          float* to) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int p = 0; p < kEights; ++p) {
    const Index column = first_column + (p * kWarp + lane) * kEight;
    if (column < width) {
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        shared[warp * pitch + column - first_column + i] = own[p][i];
      }
    }
  }
  __syncthreads();
  for (Index at = threadIdx.x; at < min(pitch, width - first_column); at += kThreads) {
    float sum = 0;
    for (int of = 0; of < kWarpsOfBlock; ++of) {
      sum += shared[of * pitch + at];
    }
    to[first_column + at] = sum;
  }
  __syncthreads();
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

// The same kernels for rows of whole eights.

/// Numbers of a row that a lane has: eights, a warp's width apart.
template <int kEights>
struct LaneOfRow {
  float value[kEights][kEight] = {};

  /// Calls `body(column, eight numbers)` for those that the row has.
  template <class Body>
  __device__ void each(Index width, Body body) {
#pragma unroll
    for (int p = 0; p < kEights; ++p) {
      const Index column = (p * kWarp + static_cast<int>(threadIdx.x) % kWarp) * kEight;
      if (column < width) {
        body(column, value[p]);
      }
    }
  }
  /// The sum of `of(number)` over the row.
  template <class Of>
  __device__ float sum(Index width, Of of) {
    float sum = 0;
    each(width, [&](Index, const float(&numbers)[kEight]) {
#pragma unroll
      for (const float number : numbers) {
        sum += of(number);
      }
    });
    return warp_sum(sum);
  }
};

template <int kEights, DType X, DType Y>
__global__ void norm_eights_kernel(LayerNorm job) {
  each_row(job.rows, [&](Index row, int lane) {
    const Index first = row * job.width;
    const auto width = static_cast<float>(job.width);
    LaneOfRow<kEights> x;
    x.each(job.width, [&](Index column, float(&numbers)[kEight]) {
      load_eight<X>(job.x.data, first + column, numbers);
      if (job.residual.data != nullptr) {
        float other[kEight];
        load_eight<Y>(job.residual.data, first + column, other);
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
          numbers[i] = as_stored<X>(numbers[i] + other[i]);
        }
        store_eight<X>(job.sum.data, first + column, numbers);
      }
    });
    // The mean of what is left puts right what rounding took: a constant row is exactly beta.
    const float rough = x.sum(job.width, [](float each) { return each; }) / width;
    float rest = 0;
    float squares = 0;
    x.each(job.width, [&](Index, const float(&numbers)[kEight]) {
#pragma unroll
      for (const float number : numbers) {
        rest += number - rough;
        squares += (number - rough) * (number - rough);
      }
    });
    rest = warp_sum(rest) / width;
    float variance = warp_sum(squares) / width - rest * rest;
    variance = variance < 0 ? 0.0F : variance;
    const float rstd = 1 / sqrtf(variance + job.epsilon);
    x.each(job.width, [&](Index column, float(&numbers)[kEight]) {
      float gamma[kEight];
      float beta[kEight];
      load_eight(job.gamma, column, gamma);
      load_eight(job.beta, column, beta);
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        numbers[i] = (numbers[i] - rough - rest) * rstd * gamma[i] + beta[i];
      }
      store_eight<Y>(job.y.data, first + column, numbers);
    });
    if (lane == 0) {
      store(job.mean, row, rough + rest);
      store(job.rstd, row, rstd);
    }
  });
}

/// dx of a row, whose own shares of dgamma and dbeta are added to what a warp has of them.
template <int kEights, DType Dy, DType X>
__device__ void norm_gradient_row(const LayerNormGradient& job,
                                  Index row,
                                  LaneOfRow<kEights>& dgamma,
                                  LaneOfRow<kEights>& dbeta) {
  const auto width = static_cast<float>(job.width);
  const Index first = row * job.width;
  const float mean = load(job.mean, row);
  const float rstd = load(job.rstd, row);
  LaneOfRow<kEights> g;
  LaneOfRow<kEights> normed;
  g.each(job.width, [&](Index column, float(&dy)[kEight]) {
    load_eight<Dy>(job.dy.data, first + column, dy);
  });
  normed.each(job.width, [&](Index column, float(&x)[kEight]) {
    load_eight<X>(job.x.data, first + column, x);
  });
  float sum = 0;
  float along = 0;
#pragma unroll
  for (int p = 0; p < kEights; ++p) {
    const Index column = (p * kWarp + static_cast<int>(threadIdx.x) % kWarp) * kEight;
    if (column < job.width) {
      float gamma[kEight];
      load_eight(job.gamma, column, gamma);
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        const float unit = (normed.value[p][i] - mean) * rstd;
        normed.value[p][i] = unit;
        dbeta.value[p][i] += g.value[p][i];
        dgamma.value[p][i] += g.value[p][i] * unit;
        g.value[p][i] *= gamma[i];
        sum += g.value[p][i];
        along += g.value[p][i] * unit;
      }
    }
  }
  sum = warp_sum(sum) / width;
  along = warp_sum(along) / width;
#pragma unroll
  for (int p = 0; p < kEights; ++p) {
    const Index column = (p * kWarp + static_cast<int>(threadIdx.x) % kWarp) * kEight;
    if (column < job.width) {
      float dx[kEight];
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        dx[i] = rstd * (g.value[p][i] - sum - normed.value[p][i] * along);
      }
      if (job.residual.data != nullptr) {  // rounded twice, as by two kernels
        float residual[kEight];
        load_eight<X>(job.residual.data, first + column, residual);
#pragma unroll
        for (int i = 0; i < kEight; ++i) {
          dx[i] = __fadd_rn(as_stored<X>(dx[i]), residual[i]);
        }
      }
      store_eight<X>(job.dx.data, first + column, dx);
    }
  }
}

// A block a part; dx and the part's own dgamma and dbeta in one pass.
template <int kEights, DType Dy, DType X>
__global__ void __launch_bounds__(kThreads)
    norm_gradient_eights_kernel(LayerNormGradient job, Index parts, float* to) {
  extern __shared__ float shared[];
  LaneOfRow<kEights> dgamma;
  LaneOfRow<kEights> dbeta;
  const Index end = part_begin(job.rows, parts, blockIdx.x + 1);
  for (Index row = part_begin(job.rows, parts, blockIdx.x) + threadIdx.x / kWarp; row < end;
       row += kWarpsOfBlock) {
    norm_gradient_row<kEights, Dy, X>(job, row, dgamma, dbeta);
  }
  float* const own = to + blockIdx.x * 2 * job.width;
  add_warps(dgamma.value, 0, job.width, job.width, shared, own);
  add_warps(dbeta.value, 0, job.width, job.width, shared, own + job.width);
}

template <DType X>
__global__ void sum_eights_kernel(
    const std::byte* x, Index first_outer, Index rows, Index width, Index parts, float* to) {
  __shared__ float shared[kWarpsOfBlock * kColumns];
  const Index first_column = Index{blockIdx.x} * kColumns;
  const Index column = first_column + threadIdx.x % kWarp * kEight;
  const Index part = blockIdx.y;
  const Index outer = first_outer + blockIdx.z;
  float sums[1][kEight] = {};
  if (column < width) {
    const Index end = part_begin(rows, parts, part + 1);
#pragma unroll 4
    for (Index row = part_begin(rows, parts, part) + threadIdx.x / kWarp; row < end;
         row += kWarpsOfBlock) {
      float own[kEight];
      load_eight<X>(x, (outer * rows + row) * width + column, own);
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        sums[0][i] += own[i];
      }
    }
  }
  add_warps(sums, first_column, width, kColumns, shared, to + (outer * parts + part) * width);
}

constexpr Index kMostEights = 5;  // of a lane: rows of 1280

bool is_in_eights(Index width, std::initializer_list<Elements> all) {
  return width % kEight == 0 && std::all_of(all.begin(), all.end(), [](const Elements& each) {
           return is_in_eights(each);
         });
}
bool fits_in_registers(Index width) { return width <= kMostEights * kColumns; }

template <int kCount>
struct Count {
  static constexpr int kValue = kCount;
};
/// Calls `function(Count<N>())`, N eights for each lane of a warp being a row or more.
template <class Function>
void with_eights(Index width, Function&& function) {
  if (width <= kColumns) {
    function(Count<1>());
  } else if (width <= 3 * kColumns) {
    function(Count<3>());
  } else {
    function(Count<kMostEights>());
  }
}

/// A stream of f32 beside 16 bits, or all alike: what models have.
constexpr bool is_usual(DType wide, DType narrow) {
  return wide == narrow || wide == DType::f32;
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
  const DType residual = job.residual ? job.residual.dtype : job.y.dtype;
  HALFWATT_CHECK(!job.residual || job.sum.dtype == job.x.dtype, "a sum stored as x is");
  const bool in_eights =
      fits_in_registers(job.width) && residual == job.y.dtype &&
      is_usual(job.x.dtype, job.y.dtype) &&
      is_in_eights(job.width, {job.x, job.residual, job.sum, job.gamma, job.beta, job.y});
  with_storage(job.x.dtype, [&](auto x) {
    with_storage(job.y.dtype, [&](auto y) {
      constexpr DType kX = decltype(x)::kDType;
      constexpr DType kY = decltype(y)::kDType;
      if constexpr (is_usual(kX, kY)) {
        if (in_eights) {
          return with_eights(job.width, [&](auto count) {
            norm_eights_kernel<decltype(count)::kValue, kX, kY>
                <<<warps_for(job.rows), kThreads, 0, stream>>>(job);
          });
        }
      }
      with_storage(residual, [&](auto other) {
        layer_norm_kernel<kX, decltype(other)::kDType, kY>
            <<<warps_for(job.rows), kThreads, 0, stream>>>(job);
      });
    });
  });
  check_launch("layer_norm");
}

std::size_t layer_norm_gradient_bytes(Index rows, Index width) {
  return static_cast<std::size_t>(parts_of_norm(rows) * 2 * width) * sizeof(float);
}

void layer_norm_gradient(Stream stream, const LayerNormGradient& job) {
  if (job.width == 0) {
    return;
  }
  HALFWATT_CHECK(job.dx.dtype == job.x.dtype, "a gradient stored as x is");
  const Index parts = parts_of_norm(job.rows);
  auto* const sums = reinterpret_cast<float*>(job.workspace);
  const bool in_eights =
      fits_in_registers(job.width) && is_usual(job.x.dtype, job.dy.dtype) &&
      (!job.residual || job.residual.dtype == job.x.dtype) &&
      is_in_eights(job.width, {job.dy, job.x, job.gamma, job.residual, job.dx});
  with_storage(job.dy.dtype, [&](auto dy) {
    with_storage(job.x.dtype, [&](auto x) {
      constexpr DType kDy = decltype(dy)::kDType;
      constexpr DType kX = decltype(x)::kDType;
      if constexpr (is_usual(kX, kDy)) {
        if (in_eights) {
          return with_eights(job.width, [&](auto count) {
            const std::size_t bytes =
                static_cast<std::size_t>(job.width * kWarpsOfBlock) * sizeof(float);
            norm_gradient_eights_kernel<decltype(count)::kValue, kDy, kX>
                <<<static_cast<unsigned>(parts), kThreads, bytes, stream>>>(job, parts, sums);
          });
        }
      }
      // Before dx, which may lie where dy does.
      const dim3 grid(columns_of(job.width), static_cast<unsigned>(parts));
      layer_norm_parts_kernel<kDy, kX><<<grid, kThreads, 0, stream>>>(job, parts, sums);
      if (job.rows > 0) {
        layer_norm_dx_kernel<kDy, kX><<<warps_for(job.rows), kThreads, 0, stream>>>(job);
      }
    });
  });
  add_parts(stream, sums, 1, parts, 2 * job.width, job.width, job.dgamma);
  add_parts(stream, sums + job.width, 1, parts, 2 * job.width, job.width, job.dbeta);
  check_launch("layer_norm_gradient");
}

std::size_t sum_rows_bytes(Index outer, Index rows, Index width) {
  return static_cast<std::size_t>(outer * parts_of_sum(rows, width) * width) * sizeof(float);
}

void sum_rows(Stream stream,
              Elements x,
              Elements y,
              Index outer,
              Index rows,
              Index width,
              std::byte* workspace) {
  if (outer == 0 || width == 0) {
    return;
  }
  const Index parts = parts_of_sum(rows, width);
  auto* const sums = reinterpret_cast<float*>(workspace);
  const bool in_eights = is_in_eights(width, {x});
  constexpr Index kDeepest = 65535;  // of a grid
  with_storage(x.dtype, [&](auto tag) {
    constexpr DType kX = decltype(tag)::kDType;
    for (Index first = 0; first < outer; first += kDeepest) {
      const auto depth = static_cast<unsigned>(std::min(kDeepest, outer - first));
      const auto of_parts = static_cast<unsigned>(parts);
      if (in_eights) {
        const auto columns = static_cast<unsigned>((width + kColumns - 1) / kColumns);
        sum_eights_kernel<kX><<<dim3(columns, of_parts, depth), kThreads, 0, stream>>>(
            x.data, first, rows, width, parts, sums);
      } else {
        sum_parts_kernel<kX><<<dim3(columns_of(width), of_parts, depth), kThreads, 0, stream>>>(
            x.data, first, rows, width, parts, sums);
      }
    }
  });
  add_parts(stream, sums, outer, parts, width, width, y);
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

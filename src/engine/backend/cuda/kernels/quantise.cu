#include <cuda_fp8.h>

#include "engine/backend/cuda/kernels/quantise.h"
#include "engine/backend/cuda/kernels/types.cuh"

namespace halfwatt::cuda {
namespace {

constexpr int kSixteen = 16;  // codes of one access
constexpr int kTile = 64;

__device__ float largest_of(DType format) { return format == DType::e4m3 ? 448.0F : 57344.0F; }

/// The scale that section 1.9 has; `otherwise` where the amax says nothing.
__device__ float scale_to(DType format, float amax, int margin, float otherwise) {
  if (!(amax > 0) || !isfinite(amax)) {
    return otherwise;
  }
  return fminf(ldexpf(__fdiv_rn(largest_of(format), amax), -margin), 0x1.fffffep127F);
}

/// Magnitudes as whole numbers are in the same order, and a NaN is above all others.
__device__ unsigned order_of(float x) { return __float_as_uint(fabsf(x)); }

__device__ std::uint8_t code_of(float x, DType format) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE,
                               format == DType::e4m3 ? __NV_E4M3 : __NV_E5M2);
}

template <DType X>
__global__ void largest_kernel(const std::byte* x, bool in_eights, Index count, unsigned* to) {
  unsigned largest = 0;
  const Index eights = in_eights ? count / kEight : 0;
  each(eights, [&](Index at) {
    float values[kEight];
    load_eight<X>(x, at * kEight, values);
#pragma unroll
    for (const float value : values) {
      largest = max(largest, order_of(value));
    }
  });
  each(count - eights * kEight,
       [&](Index at) { largest = max(largest, order_of(load<X>(x, eights * kEight + at))); });
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    largest = max(largest, __shfl_xor_sync(0xffffffffU, largest, apart));
  }
  if (threadIdx.x % kWarp == 0) {
    atomicMax(to, largest);  // in whatever order, the largest is the same
  }
}

__global__ void scale_kernel(DType format, const float* largest, float* scale) {
  *scale = scale_to(format, *largest, 0, 1);
}

__global__ void invert_kernel(const float* scale, float* inverse) {
  *inverse = __fdiv_rn(1, *scale);
}

/// Sixteen codes of a row of `to` for each thread; `in_sixteens`: x is read eight at a time.
template <DType X>
__global__ void quantise_kernel(Quantised job, bool in_sixteens) {
  const float scale = *job.scale;
  const Index pieces = job.to_columns / kSixteen;
  each(job.to_rows * pieces, [&](Index at) {
    const Index row = at / pieces;
    const Index column = at % pieces * kSixteen;
    const Index first = row * job.columns + column;
    float numbers[2][kEight] = {};
    if (in_sixteens && row < job.rows) {
      load_eight<X>(job.x.data, first, numbers[0]);
      load_eight<X>(job.x.data, first + kEight, numbers[1]);
    } else {
#pragma unroll
      for (int i = 0; i < kSixteen; ++i) {
        if (row < job.rows && column + i < job.columns) {
          numbers[i / kEight][i % kEight] = load<X>(job.x.data, first + i);
        }
      }
    }
    __align__(16) std::uint8_t codes[kSixteen];
#pragma unroll
    for (int i = 0; i < kSixteen; ++i) {
      codes[i] = code_of(numbers[i / kEight][i % kEight] * scale, job.format);
    }
    *reinterpret_cast<uint4*>(job.to + row * job.to_columns + column) =
        *reinterpret_cast<const uint4*>(codes);
  });
}

/// A tile of kTile x kTile numbers a block, turned over in shared memory.
template <DType X>
__global__ void quantise_transposed_kernel(Quantised job) {
  constexpr int kPitch = kTile + 4;
  __shared__ __align__(4) std::uint8_t codes[kTile * kPitch];  // [column][row]
  const float scale = *job.scale;
  const Index tiles = (job.to_columns + kTile - 1) / kTile;
  const Index first_row = blockIdx.x % tiles * kTile;
  const Index first_column = blockIdx.x / tiles * kTile;
  for (int at = static_cast<int>(threadIdx.x); at < kTile * kTile; at += kThreads) {
    const Index row = first_row + at / kTile;
    const Index column = first_column + at % kTile;
    const bool is_there = row < job.rows && column < job.columns;
    codes[at % kTile * kPitch + at / kTile] =
        is_there ? code_of(load<X>(job.x.data, row * job.columns + column) * scale, job.format)
                 : std::uint8_t{0};
  }
  __syncthreads();
  constexpr int kWords = kTile / 4;
  for (int at = static_cast<int>(threadIdx.x); at < kTile * kWords; at += kThreads) {
    const Index to_row = first_column + at / kWords;
    const Index to_column = first_row + at % kWords * 4;
    if (to_row < job.to_rows && to_column < job.to_columns) {
      *reinterpret_cast<unsigned*>(job.to + to_row * job.to_columns + to_column) =
          *reinterpret_cast<const unsigned*>(codes + at / kWords * kPitch + at % kWords * 4);
    }
  }
}

__global__ void observe_kernel(const float* from, const float* amax, Index steps, float* to) {
  for (Index at = threadIdx.x; at < steps; at += kThreads) {
    float value = from[at];
    if (at == 0) {
      value = __uint_as_float(max(order_of(value), order_of(*amax)));
    }
    to[at] = value;
  }
}

__global__ void rescale_kernel(Rescale job) {
  __shared__ unsigned largest;
  const int thread = static_cast<int>(threadIdx.x);
  const float amax = job.history[0];
  const float before = *job.scale;
  const bool moves = *job.skip == 0 && amax != 0;  // NaN is no 0: its step has been
  if (thread == 0) {
    largest = 0;
  }
  __syncthreads();
  const Index seen = job.most_recent ? 1 : job.steps;
  for (Index at = thread; at < seen; at += kThreads) {
    atomicMax(&largest, order_of(job.history[at]));
  }
  __syncthreads();
  for (Index first = 0; first < job.steps; first += kThreads) {  // it may be in place
    const Index at = first + thread;
    float value = 0;
    if (at < job.steps) {
      value = !moves ? job.history[at] : at + 1 < job.steps ? job.history[at + 1] : amax;
    }
    __syncthreads();
    if (at < job.steps) {
      job.new_history[at] = at == 0 ? 0.0F : value;
    }
    __syncthreads();
  }
  if (thread == 0) {
    *job.new_scale =
        moves ? scale_to(job.format, __uint_as_float(largest), job.margin, before) : before;
    *job.amax = amax;
  }
}

}  // namespace

void largest_magnitude(Stream stream, const Elements& x, Index count, float* largest) {
  check(cudaMemsetAsync(largest, 0, sizeof(float), stream), "clear an amax");
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    largest_kernel<decltype(tag)::kDType>
        <<<blocks_for((count + kEight - 1) / kEight), kThreads, 0, stream>>>(
            x.data, is_in_eights(x), count, reinterpret_cast<unsigned*>(largest));
  });
  check_launch("largest_magnitude");
}

void scale_for(Stream stream, DType format, const float* largest, float* scale) {
  scale_kernel<<<1, 1, 0, stream>>>(format, largest, scale);
  check_launch("scale_for");
}

void invert(Stream stream, const float* scale, float* inverse) {
  invert_kernel<<<1, 1, 0, stream>>>(scale, inverse);
  check_launch("invert");
}

void quantise(Stream stream, const Quantised& job) {
  if (job.to_rows * job.to_columns == 0) {
    return;
  }
  with_storage(job.x.dtype, [&](auto tag) {
    constexpr DType kX = decltype(tag)::kDType;
    if (job.transposed) {
      const Index blocks =
          ((job.to_columns + kTile - 1) / kTile) * ((job.to_rows + kTile - 1) / kTile);
      HALFWATT_CHECK(blocks < (Index{1} << 31), "a matrix of a grid");
      quantise_transposed_kernel<kX>
          <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(job);
    } else {
      quantise_kernel<kX>
          <<<blocks_for(job.to_rows * (job.to_columns / kSixteen)), kThreads, 0, stream>>>(
              job, is_in_eights(job.x) && job.columns % kSixteen == 0);
    }
  });
  check_launch("quantise");
}

void observe_amax(Stream stream, const float* from, const float* amax, Index steps, float* to) {
  observe_kernel<<<1, kThreads, 0, stream>>>(from, amax, steps, to);
  check_launch("observe_amax");
}

void rescale(Stream stream, const Rescale& job) {
  rescale_kernel<<<1, kThreads, 0, stream>>>(job);
  check_launch("rescale");
}

}  // namespace halfwatt::cuda

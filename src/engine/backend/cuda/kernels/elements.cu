#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/random.cuh"
#include "engine/backend/cuda/kernels/step_functions.h"
#include "engine/backend/cuda/kernels/types.cuh"
#include "engine/tensor/normalisation.h"

namespace halfwatt::cuda {
namespace {

constexpr int kFour = 4;

/// An input of a map, whose dtype is known.
template <DType D>
struct Pointer {
  const std::byte* data;
};
template <DType D>
struct Eight {
  float value[kEight];
  __device__ Eight(const std::byte* from, Index first) { load_eight<D>(from, first, value); }
};

__global__ void convert_any(Elements from, Elements to, Index count) {
  each(count, [&](Index i) { store(to, i, load(from, i)); });
}

// From f64 straight to the format: two roundings are not one.
__global__ void convert_f64(const double* from, Elements to, Index count) {
  each(count, [&](Index i) { store(to, i, from[i]); });
}

// y = function(x...), eight elements at a time where they are whole eights, or else one by one.
template <class Function, DType Y, DType... X>
__global__ void map_kernel(
    Function function, bool in_eights, Index count, std::byte* y, Pointer<X>... x) {
  const Index eights = in_eights ? count / kEight : 0;
  each(eights, [&](Index at) {
    const Index first = at * kEight;
    const auto map = [&](const auto&... loaded) {
      float result[kEight];
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        result[i] = function(loaded.value[i]...);
      }
      store_eight<Y>(y, first, result);
    };
    map(Eight<X>(x.data, first)...);
  });
  each(count - eights * kEight, [&](Index at) {
    const Index i = eights * kEight + at;
    store<Y>(y, i, function(load<X>(x.data, i)...));
  });
}

template <DType Y, DType... X, class Function>
void map(Stream stream, const Function& function, Index count, Elements y, Pointer<X>... x) {
  const bool in_eights =
      is_in_eights(y) && (... && is_in_eights(Elements{const_cast<std::byte*>(x.data), X}));
  map_kernel<Function, Y, X...>
      <<<blocks_for((count + kEight - 1) / kEight), kThreads, 0, stream>>>(function, in_eights,
                                                                           count, y.data, x...);
}

// Four bytes of a plane at a time where they are whole fours, or else one by one. What the
// bytes become is worked out once by a block: two divisions a byte, not a pixel.
__global__ void normalise_kernel(const std::uint8_t* x,
                                 float* y,
                                 bool in_fours,
                                 Index planes,
                                 Index plane,
                                 const __grid_constant__ ChannelNorms by) {
  static_assert(kThreads == 256, "a thread for each byte that there is");
  __shared__ float of[kThreads];
  const Index fours = in_fours ? plane / kFour : 0;
  for (Index at = blockIdx.y; at < planes; at += gridDim.y) {
    const int channel = static_cast<int>(at % by.channels);
    __syncthreads();  // nobody needs those of the plane before any more
    of[threadIdx.x] = normalised(static_cast<std::uint8_t>(threadIdx.x), by.mean[channel],
                                 by.deviation[channel]);
    __syncthreads();
    const std::uint8_t* const from = x + at * plane;
    float* const to = y + at * plane;
    each(fours, [&](Index i) {
      const uchar4 four = reinterpret_cast<const uchar4*>(from)[i];
      reinterpret_cast<float4*>(to)[i] = {of[four.x], of[four.y], of[four.z], of[four.w]};
    });
    each(plane - fours * kFour, [&](Index i) {
      const Index one = fours * kFour + i;
      to[one] = of[from[one]];
    });
  }
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Scaled {
  float factor;
  Elements by;
  __device__ float operator()(float x) const {
    return x * (by.data != nullptr ? load(by, 0) : factor);
  }
};
template <DType X>
struct Gelu {
  __device__ float operator()(float x) const {
    return X == DType::f32 ? gelu_of(x) : RoughGelu(x).value();
  }
};
template <DType X>
struct GeluGradient {
  __device__ float operator()(float dy, float x) const {
    return dy * (X == DType::f32 ? gelu_slope_of(x) : RoughGelu(x).slope());
  }
};

template <DType A, DType B, DType Y>
__global__ void add_repeated_kernel(const std::byte* a,
                                    const std::byte* b,
                                    bool in_eights,
                                    std::byte* y,
                                    Index count,
                                    Index width) {
  const Index eights = in_eights ? count / kEight : 0;
  each(eights, [&](Index at) {
    const Index first = at * kEight;
    float sum[kEight];
    float other[kEight];
    load_eight<A>(a, first, sum);
    load_eight<B>(b, first % width, other);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      sum[i] += other[i];
    }
    store_eight<Y>(y, first, sum);
  });
  each(count - eights * kEight, [&](Index at) {
    const Index i = eights * kEight + at;
    store<Y>(y, i, load<A>(a, i) + load<B>(b, i % width));
  });
}

template <DType X>
__global__ void drop_kernel(const std::byte* x,
                            std::byte* y,
                            Index count,
                            Index width,
                            float keep,
                            float factor,
                            bool whole_samples,
                            RandomSource from) {
  const DeviceRandom random(from);
  each(count, [&](Index i) {
    const auto sample = random.first_sample() + static_cast<std::uint64_t>(i / width);
    const auto element = whole_samples ? 0U : static_cast<std::uint64_t>(i % width);
    const bool kept = random.keep(sample, element, keep);
    store<X>(y, i, kept ? load<X>(x, i) * factor : 0.0F);
  });
}

template <DType Y>
__global__ void normals_kernel(std::byte* y, PhiloxKey key, Index count) {
  constexpr float kUnit = 0x1p-32F;
  each(count, [&](Index i) {
    const auto words = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, key);
    const float radius = sqrtf(-2 * logf((static_cast<float>(words[0]) + 1) * kUnit));
    store<Y>(y, i, radius * cospif(2 * static_cast<float>(words[1]) * kUnit));
  });
}

template <class T>
__global__ void fill_kernel(T* y, T value, Index count) {
  each(count, [&](Index i) { y[i] = value; });
}

void drop(Stream stream,
          Elements x,
          Elements y,
          Index count,
          Index width,
          double rate,
          bool whole_samples,
          const RandomSource& random) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    drop_kernel<decltype(tag)::kDType><<<blocks_for(count), kThreads, 0, stream>>>(
        x.data, y.data, count, width, static_cast<float>(1 - rate),
        static_cast<float>(1 / (1 - rate)), whole_samples, random);
  });
  check_launch("dropout");
}

bool is_large(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

void convert(Stream stream, Elements from, Elements to, Index count) {
  if (count == 0) {
    return;
  }
  if (from.dtype == DType::f64) {
    convert_f64<<<blocks_for(count), kThreads, 0, stream>>>(
        reinterpret_cast<const double*>(from.data), to, count);
  } else if (is_large(from.dtype) && is_large(to.dtype)) {
    with_storage(from.dtype, [&](auto one) {
      with_storage(to.dtype, [&](auto other) {
        map<decltype(other)::kDType>(stream, Same(), count, to,
                                     Pointer<decltype(one)::kDType>{from.data});
      });
    });
  } else {
    convert_any<<<blocks_for(count), kThreads, 0, stream>>>(from, to, count);
  }
  check_launch("convert");
}

void normalise(
    Stream stream, Elements x, Elements y, Index planes, Index plane, const ChannelNorms& by) {
  if (planes * plane == 0) {
    return;
  }
  constexpr Index kOfThread = 16;     // pixels, so that a block's table is used often
  constexpr Index kMostRows = 65535;  // of blocks
  const bool in_fours = plane % kFour == 0 && is_in_eights(x) && is_in_eights(y);
  const dim3 blocks(blocks_for((plane + kOfThread - 1) / kOfThread),
                    static_cast<unsigned>(std::min(planes, kMostRows)));
  normalise_kernel<<<blocks, kThreads, 0, stream>>>(
      reinterpret_cast<const std::uint8_t*>(x.data), reinterpret_cast<float*>(y.data), in_fours,
      planes, plane, by);
  check_launch("normalise");
}

void add(Stream stream, Elements a, Elements b, Elements y, Index count, Index width) {
  if (count == 0) {
    return;
  }
  with_storage(a.dtype, [&](auto of_a) {
    with_storage(b.dtype, [&](auto of_b) {
      with_storage(y.dtype, [&](auto of_y) {
        constexpr DType kA = decltype(of_a)::kDType;
        constexpr DType kB = decltype(of_b)::kDType;
        constexpr DType kY = decltype(of_y)::kDType;
        if (width == count) {
          map<kY>(stream, Sum(), count, y, Pointer<kA>{a.data}, Pointer<kB>{b.data});
        } else {
          const bool in_eights =
              width % kEight == 0 && is_in_eights(a) && is_in_eights(b) && is_in_eights(y);
          add_repeated_kernel<kA, kB, kY>
              <<<blocks_for((count + kEight - 1) / kEight), kThreads, 0, stream>>>(
                  a.data, b.data, in_eights, y.data, count, width);
        }
      });
    });
  });
  check_launch("add");
}

void scale(Stream stream, Elements x, float factor, Elements by, Elements y, Index count) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto of_x) {
    with_storage(y.dtype, [&](auto of_y) {
      map<decltype(of_y)::kDType>(stream, Scaled{factor, by}, count, y,
                                  Pointer<decltype(of_x)::kDType>{x.data});
    });
  });
  check_launch("scale");
}

void gelu(Stream stream, Elements x, Elements y, Index count) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    constexpr DType kX = decltype(tag)::kDType;
    map<kX>(stream, Gelu<kX>(), count, y, Pointer<kX>{x.data});
  });
  check_launch("gelu");
}

void gelu_gradient(Stream stream, Elements dy, Elements x, Elements dx, Index count) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    constexpr DType kX = decltype(tag)::kDType;
    map<kX>(stream, GeluGradient<kX>(), count, dx, Pointer<kX>{dy.data}, Pointer<kX>{x.data});
  });
  check_launch("gelu_gradient");
}

void dropout(Stream stream,
             Elements x,
             Elements y,
             Index count,
             Index width,
             double rate,
             RandomSource random) {
  drop(stream, x, y, count, width, rate, false, random);
}

void drop_path(Stream stream,
               Elements x,
               Elements y,
               Index count,
               Index width,
               double rate,
               RandomSource random) {
  drop(stream, x, y, count, width, rate, true, random);
}

void fill(Stream stream, Elements y, double value, Index count) {
  if (count == 0) {
    return;
  }
  // Its bits, once: little-endian, so that a narrow one is the low bytes.
  std::uint64_t code = 0;
  const TensorView one{{y.dtype, Shape{1}}, reinterpret_cast<std::byte*>(&code)};
  if (is_float(y.dtype)) {
    convert(TensorView{{DType::f64, Shape{1}}, reinterpret_cast<std::byte*>(&value)}, one);
  } else {
    code = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
  with_bytes(bytes_of(y.dtype), [&](auto element) {
    using T = decltype(element);
    fill_kernel<<<blocks_for(count), kThreads, 0, stream>>>(reinterpret_cast<T*>(y.data),
                                                            static_cast<T>(code), count);
  });
  check_launch("fill");
}

void fill_with_normals(Stream stream, Elements y, std::uint64_t seed, Index count) {
  const PhiloxKey key = {static_cast<std::uint32_t>(seed),
                         static_cast<std::uint32_t>(seed >> 32U)};
  with_storage(y.dtype, [&](auto tag) {
    normals_kernel<decltype(tag)::kDType>
        <<<blocks_for(count), kThreads, 0, stream>>>(y.data, key, count);
  });
  check_launch("fill_with_normals");
}

}  // namespace halfwatt::cuda

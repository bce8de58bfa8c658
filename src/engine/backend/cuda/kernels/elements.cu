#include "engine/backend/cuda/kernels/elements.h"
#include "engine/backend/cuda/kernels/random.cuh"
#include "engine/backend/cuda/kernels/step_functions.h"
#include "engine/backend/cuda/kernels/types.cuh"

namespace halfwatt::cuda {
namespace {

__global__ void convert_any(Elements from, Elements to, Index count) {
  each(count, [&](Index i) { store(to, i, load(from, i)); });
}

// From f64 straight to the format: two roundings are not one.
__global__ void convert_f64(const double* from, Elements to, Index count) {
  each(count, [&](Index i) { store(to, i, from[i]); });
}

template <DType From, DType To>
__global__ void convert_kernel(const std::byte* from, std::byte* to, Index count) {
  each(count, [&](Index i) { store<To>(to, i, load<From>(from, i)); });
}

template <DType A, DType B, DType Y>
__global__ void add_kernel(
    const std::byte* a, const std::byte* b, std::byte* y, Index count, Index width) {
  each(count, [&](Index i) { store<Y>(y, i, load<A>(a, i) + load<B>(b, i % width)); });
}

template <DType X, DType Y>
__global__ void scale_kernel(
    const std::byte* x, float factor, Elements by, std::byte* y, Index count) {
  const float times = by.data != nullptr ? load(by, 0) : factor;
  each(count, [&](Index i) { store<Y>(y, i, load<X>(x, i) * times); });
}

template <DType X>
__global__ void gelu_kernel(const std::byte* x, std::byte* y, Index count) {
  each(count, [&](Index i) { store<X>(y, i, gelu_of(load<X>(x, i))); });
}

template <DType X>
__global__ void gelu_gradient_kernel(const std::byte* dy,
                                     const std::byte* x,
                                     std::byte* dx,
                                     Index count) {
  each(count, [&](Index i) { store<X>(dx, i, load<X>(dy, i) * gelu_slope_of(load<X>(x, i))); });
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
        convert_kernel<decltype(one)::kDType, decltype(other)::kDType>
            <<<blocks_for(count), kThreads, 0, stream>>>(from.data, to.data, count);
      });
    });
  } else {
    convert_any<<<blocks_for(count), kThreads, 0, stream>>>(from, to, count);
  }
  check_launch("convert");
}

void add(Stream stream, Elements a, Elements b, Elements y, Index count, Index width) {
  if (count == 0) {
    return;
  }
  with_storage(a.dtype, [&](auto of_a) {
    with_storage(b.dtype, [&](auto of_b) {
      with_storage(y.dtype, [&](auto of_y) {
        add_kernel<decltype(of_a)::kDType, decltype(of_b)::kDType, decltype(of_y)::kDType>
            <<<blocks_for(count), kThreads, 0, stream>>>(a.data, b.data, y.data, count, width);
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
      scale_kernel<decltype(of_x)::kDType, decltype(of_y)::kDType>
          <<<blocks_for(count), kThreads, 0, stream>>>(x.data, factor, by, y.data, count);
    });
  });
  check_launch("scale");
}

void gelu(Stream stream, Elements x, Elements y, Index count) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    gelu_kernel<decltype(tag)::kDType>
        <<<blocks_for(count), kThreads, 0, stream>>>(x.data, y.data, count);
  });
  check_launch("gelu");
}

void gelu_gradient(Stream stream, Elements dy, Elements x, Elements dx, Index count) {
  if (count == 0) {
    return;
  }
  with_storage(x.dtype, [&](auto tag) {
    gelu_gradient_kernel<decltype(tag)::kDType>
        <<<blocks_for(count), kThreads, 0, stream>>>(dy.data, x.data, dx.data, count);
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

}  // namespace halfwatt::cuda

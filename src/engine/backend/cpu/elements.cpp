#include <cmath>
#include <vector>

#include "engine/backend/cpu/bindings.h"
#include "engine/tensor/convert.h"
#include "engine/tensor/keyed_random.h"
#include "engine/tensor/normalisation.h"

namespace halfwatt::cpu {
namespace {

constexpr Index kGrain = 4096;

}  // namespace

void run_cast(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const TensorView& from = call.input(0);
  const TensorView& to = call.output(0);
  const std::size_t from_bytes = bytes_of(from.type.dtype);
  const std::size_t to_bytes = bytes_of(to.type.dtype);
  const Index count = from.type.shape.elements();
  call.workers().parallel_for(count, kGrain, [&](Index begin, Index end, int) {
    const auto at = static_cast<std::size_t>(begin);
    const Shape part{end - begin};
    convert(TensorView{{from.type.dtype, part}, from.data + at * from_bytes},
            TensorView{{to.type.dtype, part}, to.data + at * to_bytes});
  });
}

void run_normalise(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Shape& shape = call.input(0).type.shape;
  const Index plane = shape[2] * shape[3];
  const auto* const x = reinterpret_cast<const std::uint8_t*>(call.input(0).data);
  auto* const y = reinterpret_cast<float*>(call.output(0).data);
  const std::vector<double>& means = call.attributes().numbers("mean");
  const std::vector<double>& deviations = call.attributes().numbers("deviation");
  call.workers().parallel_for(shape[0] * shape[1], 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      const auto channel = static_cast<std::size_t>(at % shape[1]);
      const auto mean = static_cast<float>(means[channel]);
      const auto deviation = static_cast<float>(deviations[channel]);
      for (Index i = at * plane; i < (at + 1) * plane; ++i) {
        y[i] = normalised(x[i], mean, deviation);
      }
    }
  });
}

void run_add(Call& call) {
  const bool is_alike = call.input(0).type.dtype == call.input(1).type.dtype;
  const DType dtype = call.output(0).type.dtype;
  with_element(is_alike || dtype == DType::f64 ? dtype : DType::f32, [&](auto element) {
    using E = decltype(element);
    const Shape& whole = call.output(0).type.shape;
    const Index count = whole.elements();
    const Kernels<E>& table = kernels<E>(call.isa());
    if (call.input(1).type.shape.elements() == count) {
      Add<E> job{count, call.as<E>(0), call.as<E>(1), call.to<E>(0)};
      if (!call.is_dry()) {
        table.add(call.workers(), job);
      }
    } else {
      AddRows<E> job{};
      job.width = call.input(1).type.shape.elements();
      job.rows = count / job.width;
      job.a = call.as<E>(0);
      job.b = call.as<Real<E>>(1);
      job.y = call.to<E>(0);
      if (!call.is_dry()) {
        table.add_rows(call.workers(), job);
      }
    }
    call.finish();
  });
}

void run_scale(Call& call) {
  with_real(call.output(0).type.dtype, [&](auto real) {
    using T = decltype(real);
    const T factor = call.inputs() == 2 ? call.scalar<T>(1)
                                        : static_cast<T>(call.attributes().number("factor"));
    const T* const x = call.as<T>(0);
    T* const y = call.to<T>(0);
    if (!call.is_dry()) {
      const Index count = call.output(0).type.shape.elements();
      call.workers().parallel_for(count, kGrain, [&](Index begin, Index end, int) {
        for (Index at = begin; at < end; ++at) {
          y[at] = x[at] * factor;
        }
      });
    }
    call.finish();
  });
}

void run_gelu(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    GeluForward<E> job{};
    job.count = call.input(0).type.shape.elements();
    job.x = call.as<E>(0);
    job.y = call.to<E>(0);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).gelu_forward(call.workers(), job);
    }
    call.finish();
  });
}

void run_gelu_gradient(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    GeluBackward<E> job{};
    job.count = call.input(0).type.shape.elements();
    job.dy = call.as<E>(0);
    job.x = call.as<E>(1);
    job.dx = call.to<E>(0);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).gelu_backward(call.workers(), job);
    }
    call.finish();
  });
}

void run_dropout(Call& call) {
  with_real(call.input(0).type.dtype, [&](auto real) {
    using T = decltype(real);
    const T* const x = call.as<T>(0);
    T* const y = call.to<T>(0);
    if (!call.is_dry()) {
      const RandomKey key = random_key(call, 1);
      const KeyedRandom random(key.seed, call.attributes().word("path"), key.attempt);
      const double rate = call.attributes().number("rate");
      const auto keep = static_cast<float>(1 - rate);
      const auto factor = static_cast<T>(1 / (1 - rate));
      const Shape& shape = call.input(0).type.shape;
      const Index width = shape[0] == 0 ? 0 : shape.elements() / shape[0];
      call.workers().parallel_for(shape[0], 1, [&](Index begin, Index end, int) {
        for (Index sample = begin; sample < end; ++sample) {
          for (Index at = 0; at < width; ++at) {
            const bool kept = random.keep(key.first_sample + static_cast<std::uint64_t>(sample),
                                          static_cast<std::uint64_t>(at), keep);
            const Index element = sample * width + at;
            y[element] = kept ? x[element] * factor : 0;
          }
        }
      });
    }
    call.finish();
  });
}

void run_drop_path(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Shape& shape = call.input(0).type.shape;
    ScaleRows<E> job{};
    job.rows = shape[0];
    job.width = shape[0] == 0 ? 0 : shape.elements() / shape[0];
    job.x = call.as<E>(0);
    auto* const factors = reinterpret_cast<Real<E>*>(
        call.scratch(static_cast<std::size_t>(job.rows) * sizeof(Real<E>)));
    job.factors = factors;
    job.y = call.to<E>(0);
    if (!call.is_dry()) {
      const RandomKey key = random_key(call, 1);
      const KeyedRandom random(key.seed, call.attributes().word("path"), key.attempt);
      const double rate = call.attributes().number("rate");
      for (Index sample = 0; sample < job.rows; ++sample) {
        const bool kept = random.keep(key.first_sample + static_cast<std::uint64_t>(sample), 0,
                                      static_cast<float>(1 - rate));
        factors[sample] = kept ? static_cast<Real<E>>(1 / (1 - rate)) : 0;
      }
      kernels<E>(call.isa()).scale_rows(call.workers(), job);
    }
    call.finish();
  });
}

}  // namespace halfwatt::cpu

#include "engine/backend/cpu/bindings.h"
#include "engine/backend/shapes.h"
#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

template <class E>
CrossEntropy<E> cross_entropy_of(Call& call, std::size_t logits) {
  CrossEntropy<E> job{};
  const Shape& shape = call.input(logits).type.shape;
  job.rows = shape[0];
  job.classes = shape[1];
  job.logits = call.as<E>(logits);
  job.labels = reinterpret_cast<const std::int64_t*>(call.input(logits + 1).data);
  job.valid = call.scalar<std::int64_t>(logits + 2);
  job.smoothing = static_cast<Real<E>>(call.attributes().number("smoothing"));
  return job;
}

template <class E>
BinaryCrossEntropy<E> binary_of(Call& call, std::size_t logits) {
  BinaryCrossEntropy<E> job{};
  const Shape& shape = call.input(logits).type.shape;
  job.rows = shape[0];
  job.classes = shape[1];
  job.logits = call.as<E>(logits);
  job.targets = call.as<Real<E>>(logits + 1);
  job.valid = call.scalar<std::int64_t>(logits + 2);
  return job;
}

// Where a gradient is asked for, the losses are written and nobody reads them.
template <class E, class Job>
void take_losses(Call& call, Job& job) {
  job.loss = reinterpret_cast<Real<E>*>(
      call.scratch(static_cast<std::size_t>(job.rows) * sizeof(Real<E>)));
  job.mean = reinterpret_cast<Real<E>*>(call.scratch(sizeof(Real<E>)));
}

// The sum of the first two inputs as it is stored: it is that which is normed.
template <class E>
const E* rounded_sum(Call& call) {
  const TensorView& stored = call.output(0);
  Add<E> job{stored.type.shape.elements(), call.as<E>(0), call.as<E>(1), call.to<E>(0)};
  if (!call.is_dry()) {
    kernels<E>(call.isa()).add(call.workers(), job);
  }
  call.finish();
  if (!call.is_dry()) {
    convert(stored, {{stored_as<E>(), stored.type.shape}, reinterpret_cast<std::byte*>(job.y)});
  }
  return job.y;
}

}  // namespace

void run_layer_norm(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Shape& shape = call.input(0).type.shape;
    LayerNormForward<E> job{};
    job.rows = shape.rows();
    job.width = shape.last(0);
    job.x = call.as<E>(0);
    job.gamma = call.as<Real<E>>(1);
    job.beta = call.as<Real<E>>(2);
    job.epsilon = static_cast<Real<E>>(call.attributes().number("eps"));
    job.y = call.to<E>(0);
    job.mean = call.to<Real<E>>(1);
    job.rstd = call.to<Real<E>>(2);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).layer_norm_forward(call.workers(), job);
    }
    call.finish();
  });
}

void run_add_layer_norm(Call& call) {
  const DType sum = call.output(0).type.dtype;
  const bool is_alike = call.input(0).type.dtype == sum && call.input(1).type.dtype == sum &&
                        call.output(1).type.dtype == sum;
  with_element(is_alike || sum == DType::f64 ? sum : DType::f32, [&](auto element) {
    using E = decltype(element);
    const Shape& shape = call.input(0).type.shape;
    LayerNormForward<E> job{};
    job.rows = shape.rows();
    job.width = shape.last(0);
    if (stored_as<E>() == sum) {
      job.x = call.as<E>(0);
      job.residual = call.as<E>(1);
      job.sum = call.to<E>(0);
    } else {
      job.x = rounded_sum<E>(call);
    }
    job.gamma = call.as<Real<E>>(2);
    job.beta = call.as<Real<E>>(3);
    job.epsilon = static_cast<Real<E>>(call.attributes().number("eps"));
    job.y = call.to<E>(1);
    job.mean = call.to<Real<E>>(2);
    job.rstd = call.to<Real<E>>(3);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).layer_norm_forward(call.workers(), job);
    }
    call.finish();
  });
}

void run_layer_norm_gradient(Call& call) {
  with_element(call.input(1).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Kernels<E>& table = kernels<E>(call.isa());
    const Shape& shape = call.input(1).type.shape;
    LayerNormBackward<E> job{};
    job.rows = shape.rows();
    job.width = shape.last(0);
    job.dy = call.as<E>(0);
    job.x = call.as<E>(1);
    job.gamma = call.as<Real<E>>(2);
    job.mean = call.as<Real<E>>(3);
    job.rstd = call.as<Real<E>>(4);
    job.residual = call.inputs() == 6 ? call.as<E>(5) : nullptr;
    job.dx = call.to<E>(0);
    job.dgamma = call.to<Real<E>>(1);
    job.dbeta = call.to<Real<E>>(2);
    job.workspace = call.scratch(table.layer_norm_backward_bytes(job.rows, job.width));
    if (!call.is_dry()) {
      table.layer_norm_backward(call.workers(), job);
    }
    call.finish();
  });
}

void run_cross_entropy(Call& call) {
  with_real(call.input(0).type.dtype, [&](auto real) {
    using E = decltype(real);
    CrossEntropy<E> job = cross_entropy_of<E>(call, 0);
    job.mean = call.to<E>(0);
    job.loss = call.to<E>(1);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).cross_entropy(call.workers(), job);
    }
    call.finish();
  });
}

void run_cross_entropy_gradient(Call& call) {
  with_real(call.input(1).type.dtype, [&](auto real) {
    using E = decltype(real);
    CrossEntropy<E> job = cross_entropy_of<E>(call, 1);
    take_losses<E>(call, job);
    job.gradient = call.to<E>(0);
    job.factor = call.scalar<E>(0);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).cross_entropy(call.workers(), job);
    }
    call.finish();
  });
}

void run_binary_cross_entropy(Call& call) {
  with_real(call.input(0).type.dtype, [&](auto real) {
    using E = decltype(real);
    BinaryCrossEntropy<E> job = binary_of<E>(call, 0);
    job.mean = call.to<E>(0);
    job.loss = call.to<E>(1);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).binary_cross_entropy(call.workers(), job);
    }
    call.finish();
  });
}

void run_binary_cross_entropy_gradient(Call& call) {
  with_real(call.input(1).type.dtype, [&](auto real) {
    using E = decltype(real);
    BinaryCrossEntropy<E> job = binary_of<E>(call, 1);
    take_losses<E>(call, job);
    job.gradient = call.to<E>(0);
    job.factor = call.scalar<E>(0);
    if (!call.is_dry()) {
      kernels<E>(call.isa()).binary_cross_entropy(call.workers(), job);
    }
    call.finish();
  });
}

// [outer, axis, inner] to [outer, inner].
void run_mean(Call& call) {
  with_real(call.input(0).type.dtype, [&](auto real) {
    using T = decltype(real);
    const Shape& shape = call.input(0).type.shape;
    const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
    Index inner = 1;
    for (std::size_t at = axis + 1; at < shape.rank(); ++at) {
      inner *= shape[at];
    }
    const Index count = shape[axis];
    const Index outer = shape.elements() == 0 ? 0 : shape.elements() / (count * inner);
    const T* const x = call.as<T>(0);
    T* const y = call.to<T>(0);
    if (!call.is_dry()) {
      call.workers().parallel_for(outer, 1, [&](Index begin, Index end, int) {
        for (Index at = begin; at < end; ++at) {
          for (Index column = 0; column < inner; ++column) {
            T sum = 0;
            for (Index row = 0; row < count; ++row) {
              sum += x[(at * count + row) * inner + column];
            }
            y[at * inner + column] = sum / static_cast<T>(count);
          }
        }
      });
    }
    call.finish();
  });
}

void run_sum_to(Call& call) {
  with_element(call.input(0).type.dtype, [&](auto element) {
    using E = decltype(element);
    const Kernels<E>& table = kernels<E>(call.isa());
    SumRows<E> job{};
    const Spread from = *spread(call.output(0).type.shape, call.input(0).type.shape);
    job.rows = from.times;
    job.width = from.inner;
    job.x = call.as<E>(0);
    job.y = call.to<Real<E>>(0);
    job.workspace = call.scratch(table.sum_rows_bytes(job.rows, job.width));
    for (Index at = 0; at < from.outer && !call.is_dry(); ++at) {
      table.sum_rows(call.workers(), job);
      job.x += from.times * from.inner;
      job.y += from.inner;
    }
    call.finish();
  });
}

}  // namespace halfwatt::cpu

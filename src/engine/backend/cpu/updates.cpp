#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "engine/backend/cpu/bindings.h"
#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

void set_scalar(const TensorView& to, double value) {
  convert(TensorView{{DType::f64, to.type.shape}, reinterpret_cast<std::byte*>(&value)}, to);
}

// A state as `T`s that are updated where they are to be after the step: where that is not where
// they were, or they are stored otherwise, they are copied there first.
template <class T>
T* state(Call& call, std::size_t at) {
  const T* const before = call.as<T>(at);
  T* const after = call.to<T>(at);
  if (!call.is_dry() && after != before) {
    std::memcpy(after, before,
                static_cast<std::size_t>(call.input(at).type.shape.elements()) * sizeof(T));
  }
  return after;
}

}  // namespace

void run_check_gradients(Call& call) {
  double squares = 0;
  std::int64_t first_bad = -1;
  for (std::size_t at = 0; at < call.inputs(); ++at) {
    with_element(call.input(at).type.dtype, [&](auto element) {
      using E = decltype(element);
      const E* const gradient = call.as<E>(at);
      if (call.is_dry()) {
        return;
      }
      const SquareSum sum =
          kernels<E>(call.isa())
              .square_sum(call.workers(), call.input(at).type.shape.elements(), gradient);
      squares += sum.value;
      if (!sum.finite && first_bad < 0) {
        first_bad = static_cast<std::int64_t>(at);
      }
    });
  }
  if (!call.is_dry()) {
    *reinterpret_cast<std::uint8_t*>(call.output(0).data) = first_bad >= 0 ? 1 : 0;
    set_scalar(call.output(1), squares);
    std::memcpy(call.output(2).data, &first_bad, sizeof first_bad);
  }
}

// As torch.nn.utils.clip_grad_norm_, of gradients that were unscaled.
void run_gradient_factor(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const double inverse = 1 / call.scalar<double>(1);
  const double norm = std::sqrt(call.scalar<double>(0)) * inverse;
  const double most = call.attributes().number("max_norm");
  double clip = most > 0 ? most / (norm + 1e-6) : 1.0;
  clip = clip > 1 ? 1 : clip;  // a norm that is no number makes every gradient none, as there
  set_scalar(call.output(0), inverse * clip);
  set_scalar(call.output(1), norm);
}

void run_learning_rate(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Attributes& attributes = call.attributes();
  const auto step = static_cast<double>(call.scalar<std::int64_t>(0));
  const auto warmup = static_cast<double>(attributes.integer("warmup"));
  const auto total = static_cast<double>(attributes.integer("total"));
  const double floor = attributes.number("floor");
  const std::string& schedule = attributes.word("schedule");
  double share = 1;
  if (step < warmup) {
    share = (step + 1) / (warmup + 1);
  } else if (schedule != "constant" && total > warmup) {
    const double done = std::min(1.0, (step - warmup) / (total - warmup));
    const double left =
        schedule == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
    share = floor + (1 - floor) * left;
  }
  set_scalar(call.output(0), attributes.number("base") * share);
}

void run_ema(Call& call) {
  with_real(call.input(0).type.dtype, [&](auto real) {
    using T = decltype(real);
    const bool skip = call.scalar<bool>(2);
    const auto decay = static_cast<T>(call.attributes().number("decay"));
    T* const average = state<T>(call, 0);
    const T* const parameter = call.as<T>(1);
    if (!call.is_dry() && !skip) {
      for (Index at = 0; at < call.input(0).type.shape.elements(); ++at) {
        average[at] = decay * average[at] + (1 - decay) * parameter[at];
      }
    }
    call.finish();
  });
}

void run_advance(Call& call) {
  if (!call.is_dry()) {
    const std::int64_t next = call.scalar<std::int64_t>(0) + (call.scalar<bool>(1) ? 0 : 1);
    std::memcpy(call.output(0).data, &next, sizeof next);
  }
}

// torch.amp.GradScaler.update(): a scale that would not be finite is not adopted.
void run_update_scale(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Attributes& attributes = call.attributes();
  auto scale = call.scalar<float>(0);
  auto age = static_cast<std::int32_t>(call.scalar<std::int64_t>(1));
  if (call.scalar<bool>(2)) {
    scale = std::max(scale * static_cast<float>(attributes.number("backoff")),
                     static_cast<float>(attributes.number("floor")));
    age = 0;
  } else if (++age >= attributes.integer("interval")) {
    const float grown = scale * static_cast<float>(attributes.number("growth"));
    scale = std::isfinite(grown) ? grown : scale;
    age = 0;
  }
  set_scalar(call.output(0), scale);
  std::memcpy(call.output(1).data, &age, sizeof age);
}

}  // namespace halfwatt::cpu

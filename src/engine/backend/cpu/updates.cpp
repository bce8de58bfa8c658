#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "engine/backend/cpu/bindings.h"
#include "engine/tensor/convert.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt::cpu {
namespace {

// Parameters are updated so many at a time, so that how many of them changed can be told
// without another copy of all of them; a part fits the second-level cache.
constexpr Index kPart = 65536;

void set_scalar(const TensorView& to, double value) {
  convert(TensorView{{DType::f64, to.type.shape}, reinterpret_cast<std::byte*>(&value)}, to);
}

struct Tally {
  std::int64_t not_finite = 0;
  std::int64_t unchanged = 0;

  template <class T>
  void see(const T* before, const T* after, Index count) {
    for (Index at = 0; at < count; ++at) {
      not_finite += std::isfinite(after[at]) ? 0 : 1;
      unchanged += after[at] == before[at] ? 1 : 0;
    }
  }

  void write(const TensorView& to) const {
    const std::int64_t words[2] = {not_finite, unchanged};
    std::memcpy(to.data, words, sizeof words);
  }
};

// What all optimizers have after their parameter, moments and gradient.
struct Common {
  double factor;
  double rate;
  std::int64_t step;
  bool skip;
};

Common common(const Call& call, std::size_t gradient) {
  return {call.scalar<double>(gradient + 1), call.scalar<double>(gradient + 2),
          call.scalar<std::int64_t>(gradient + 3) + 1, call.scalar<bool>(gradient + 4)};
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

// Rounds computed parameters to the dtype they are stored in, in place: to nearest, or, where
// there is a random key behind the other inputs, stochastically.
template <class T>
class Rounder {
 public:
  Rounder(Call& call, std::size_t key_at)
      : call_(&call), stored_(call.output(0).type.dtype), key_at_(key_at) {
    is_needed_ = stored_ != stored_as<T>() && !(stored_ == DType::tf32);
    if (is_needed_ && !is_stochastic()) {
      codes_ = call.scratch(static_cast<std::size_t>(kPart) * bytes_of(stored_));
    }
  }

  /// Those from `begin` on of all, which lie at `values`; at most kPart.
  void round(T* values, Index begin, Index count) const {
    if (!is_needed_) {
      return;
    }
    if (!is_stochastic()) {
      const Shape part{count};
      const TensorView computed{{stored_as<T>(), part}, reinterpret_cast<std::byte*>(values)};
      convert(computed, {{stored_, part}, codes_});
      convert({{stored_, part}, codes_}, computed);
    } else if (stored_ == DType::f16) {
      stochastically<DType::f16>(values, begin, count);
    } else {
      stochastically<DType::bf16>(values, begin, count);
    }
  }

 private:
  bool is_stochastic() const { return call_->inputs() > key_at_; }

  template <DType to>
  void stochastically(T* values, Index begin, Index count) const {
    const RandomKey key = random_key(*call_, key_at_);
    const KeyedRandom random(key.seed, call_->attributes().word("path"), key.attempt);
    call_->workers().parallel_for(count, kRun, [&](Index from, Index end, int) {
      std::array<std::uint32_t, kRun> bits;
      for (Index at = from; at < end; at += kRun) {
        const auto run = static_cast<std::size_t>(std::min(kRun, end - at));
        // A parameter is one sample.
        random.fill_bits(0, static_cast<std::uint64_t>(begin + at), {bits.data(), run});
        for (std::size_t each = 0; each < run; ++each) {
          T& value = values[static_cast<std::size_t>(at) + each];
          value = decode<to>(encode_stochastic<to>(static_cast<float>(value), bits[each]));
        }
      }
    });
  }

  static constexpr Index kRun = 1024;  // random words at a time: 4 KB

  Call* call_;
  DType stored_;
  std::size_t key_at_;
  bool is_needed_ = false;
  std::byte* codes_ = nullptr;
};

// Calls `update(begin, count)` for all parts of a parameter, and tells of what will be stored:
// an update that is lost in the rounding is none.
template <class T, class Update>
void update_in_parts(
    Call& call, T* parameters, std::size_t gradient, std::size_t tally_at, Update&& update) {
  auto* const before =
      reinterpret_cast<T*>(call.scratch(static_cast<std::size_t>(kPart) * sizeof(T)));
  const Rounder<T> rounder(call, gradient + 5);
  if (call.is_dry()) {
    return;
  }
  const Index count = call.input(0).type.shape.elements();
  Tally tally;
  for (Index begin = 0; begin < count; begin += kPart) {
    const Index part = std::min(kPart, count - begin);
    std::copy_n(parameters + begin, part, before);
    update(begin, part);
    rounder.round(parameters + begin, begin, part);
    tally.see(before, parameters + begin, part);
  }
  tally.write(call.output(tally_at));
}

// As PyTorch's unfused AdamW does on a parameter of a narrow dtype: every operation is computed
// in fp32 and rounded to that dtype (section 1.6 of the facts on mixed precision).
class RoundedAdamw {
 public:
  RoundedAdamw(const Attributes& attributes, const Common& common, DType dtype)
      : dtype_(dtype),
        beta1_(attributes.number("beta1")),
        beta2_(attributes.number("beta2")),
        eps_(attributes.number("eps")),
        shrink_(1 - common.rate * attributes.number("decay")),
        step_size_(common.rate / (1 - std::pow(beta1_, static_cast<double>(common.step)))),
        root_(std::sqrt(1 - std::pow(beta2_, static_cast<double>(common.step)))),
        factor_(common.factor) {}

  void update(float& parameter, float& first, float& second, float gradient) const {
    const float g = round(gradient * narrow(factor_));
    parameter = round(parameter * narrow(shrink_));
    first = round(first + narrow(1 - beta1_) * (g - first));
    second = round(second * narrow(beta2_));
    second = round(second + narrow(1 - beta2_) * g * g);
    float denominator = round(std::sqrt(second));
    denominator = round(denominator / narrow(root_));
    denominator = round(denominator + narrow(eps_));
    parameter = round(parameter + narrow(-step_size_) * (first / denominator));
  }

 private:
  float round(float value) const { return rounded(dtype_, value); }
  static float narrow(double value) { return static_cast<float>(value); }

  DType dtype_;
  double beta1_, beta2_, eps_, shrink_, step_size_, root_, factor_;
};

void run_rounded_adamw(Call& call) {
  const Common shared = common(call, 3);
  auto* const parameters = state<float>(call, 0);
  auto* const first = state<float>(call, 1);
  auto* const second = state<float>(call, 2);
  const float* const gradients = call.as<float>(3);
  // eps is rounded where it is added: 1e-8 is less than half of f16's smallest number, but the
  // sum is rounded as a whole.
  const RoundedAdamw adamw(call.attributes(), shared, call.attributes().dtype("math"));
  update_in_parts(call, parameters, 3, 3, [&](Index begin, Index part) {
    for (Index at = begin; at < begin + part && !shared.skip; ++at) {
      adamw.update(parameters[at], first[at], second[at], gradients[at]);
    }
  });
  call.finish();
}

template <class T>
void adamw(Call& call) {
  const Common shared = common(call, 3);
  T* const parameters = state<T>(call, 0);
  T* const first = state<T>(call, 1);
  T* const second = state<T>(call, 2);
  const T* const gradients = call.as<T>(3);
  const Attributes& attributes = call.attributes();
  update_in_parts(call, parameters, 3, 3, [&](Index begin, Index part) {
    if (shared.skip) {
      return;
    }
    AdamW<T> job{};
    job.count = part;
    job.parameters = parameters + begin;
    job.first_moments = first + begin;
    job.second_moments = second + begin;
    job.gradients = gradients + begin;
    job.lr = shared.rate;
    job.beta1 = attributes.number("beta1");
    job.beta2 = attributes.number("beta2");
    job.epsilon = attributes.number("eps");
    job.weight_decay = attributes.number("decay");
    job.step = shared.step;
    job.unscale = static_cast<T>(shared.factor);
    kernels<T>(call.isa()).adamw(call.workers(), job);
  });
  call.finish();
}

template <class T>
void sgd(Call& call) {
  const Common shared = common(call, 2);
  T* const parameters = state<T>(call, 0);
  T* const momenta = state<T>(call, 1);
  const T* const gradients = call.as<T>(2);
  const Attributes& attributes = call.attributes();
  update_in_parts(call, parameters, 2, 2, [&](Index begin, Index part) {
    if (shared.skip) {
      return;
    }
    Sgd<T> job{};
    job.count = part;
    job.parameters = parameters + begin;
    job.momenta = momenta + begin;
    job.gradients = gradients + begin;
    job.lr = shared.rate;
    job.momentum = attributes.number("momentum");
    job.weight_decay = attributes.number("decay");
    job.step = shared.step;
    job.unscale = static_cast<T>(shared.factor);
    kernels<T>(call.isa()).sgd(call.workers(), job);
  });
  call.finish();
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

void run_adamw(Call& call) {
  const DType math = call.attributes().dtype("math");
  if (math == DType::f64) {
    return adamw<double>(call);
  }
  return math == DType::f32 ? adamw<float>(call) : run_rounded_adamw(call);
}

void run_sgd(Call& call) {
  return call.attributes().dtype("math") == DType::f64 ? sgd<double>(call) : sgd<float>(call);
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

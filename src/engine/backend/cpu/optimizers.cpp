#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "engine/backend/cpu/bindings.h"
#include "engine/ops/optimizer.h"
#include "engine/tensor/convert.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt::cpu {
namespace {

// Elements that go all the way, converted, updated, rounded and compared, before the next: at
// five arrays of floats 20 KB, which stay in the L1 cache.
constexpr Index kChunk = 1024;

constexpr std::size_t kMostStates = 3;

// What all parameters of a step share.
struct Common {
  double factor;
  double rate;
  std::int64_t step;
  bool skip;
};

Common common(const Call& call, std::size_t shared) {
  return {call.scalar<double>(shared), call.scalar<double>(shared + 1),
          call.scalar<std::int64_t>(shared + 2) + 1, call.scalar<bool>(shared + 3)};
}

TensorView part(const TensorView& whole, Index begin, Index count) {
  return {{whole.type.dtype, Shape{count}},
          whole.data + static_cast<std::size_t>(begin) * bytes_of(whole.type.dtype)};
}

// A chunk of one parameter, as numbers to compute with: it and its moments, which are updated
// where they are, and its gradient.
template <class T>
struct Chunk {
  Index count;
  std::array<T*, kMostStates> states;
  const T* gradient;
};

// A step of an optimizer over all parameters of a call, as if they lay one behind the other:
// threads share the elements, not the parameters.
template <class T>
class Update {
 public:
  explicit Update(Call& call)
      : call_(&call),
        of_(parameters_of(call.node().op, call.inputs())),
        shared_(common(call, of_.shared())),
        pieces_(reinterpret_cast<T*>(
            call.scratch(static_cast<std::size_t>(call.workers().threads()) * pieces() *
                         static_cast<std::size_t>(kChunk) * sizeof(T)))) {}

  const Common& shared() const { return shared_; }

  /// Calls `step(chunk)` for chunks of all parameters, unless the step is skipped.
  template <class Step>
  void run(Step&& step) {
    if (call_->is_dry()) {
      return;
    }
    Index elements = 0;
    for (std::size_t at = 0; at < of_.count; ++at) {
      elements += count_of(at);
      const TensorView& tally = call_->output(tally_of(at));
      std::memset(tally.data, 0, tally.type.bytes());
    }
    call_->workers().parallel_for(elements, kChunk, [&](Index begin, Index end, int thread) {
      Index first = 0;
      for (std::size_t at = 0; at < of_.count; ++at) {
        const Index count = count_of(at);
        const Index from = std::clamp(begin - first, Index{0}, count);
        update(at, from, std::clamp(end - first, from, count), thread, step);
        first += count;
      }
    });
  }

 private:
  std::size_t pieces() const { return of_.each + 1; }  // and what the parameter was
  std::size_t input_of(std::size_t parameter) const { return parameter * of_.each; }
  std::size_t tally_of(std::size_t parameter) const { return (parameter + 1) * of_.each - 1; }
  Index count_of(std::size_t parameter) const {
    return call_->input(input_of(parameter)).type.shape.elements();
  }
  T* piece(std::size_t at, int thread) const {
    return pieces_ + (static_cast<std::size_t>(thread) * pieces() + at) * kChunk;
  }
  static TensorView computed(const T* values, Index count) {
    return {{stored_as<T>(), Shape{count}},
            const_cast<std::byte*>(reinterpret_cast<const std::byte*>(values))};
  }
  // A tf32 is a float in memory.
  static bool is_computed_in_place(DType dtype) {
    return dtype == stored_as<T>() || (dtype == DType::tf32 && stored_as<T>() == DType::f32);
  }

  template <class Step>
  void update(std::size_t parameter, Index begin, Index end, int thread, const Step& step) {
    if (begin == end) {
      return;
    }
    Tally all;
    for (Index from = begin; from < end; from += kChunk) {
      const Tally one =
          update_chunk(parameter, from, std::min(kChunk, end - from), thread, step);
      all.not_finite += one.not_finite;
      all.unchanged += one.unchanged;
    }
    auto* const words =
        reinterpret_cast<std::int64_t*>(call_->output(tally_of(parameter)).data);
    std::atomic_ref(words[0]).fetch_add(all.not_finite, std::memory_order_relaxed);
    std::atomic_ref(words[1]).fetch_add(all.unchanged, std::memory_order_relaxed);
  }

  template <class Step>
  Tally update_chunk(
      std::size_t parameter, Index begin, Index count, int thread, const Step& step) {
    const std::size_t first = input_of(parameter);
    const std::size_t states = of_.each - 1;
    Chunk<T> chunk{count, {}, gradient(first + states, begin, count, piece(states, thread))};
    for (std::size_t at = 0; at < states; ++at) {
      chunk.states[at] = state(first + at, begin, count, piece(at, thread));
    }
    T* const before = piece(of_.each, thread);
    std::copy_n(chunk.states[0], count, before);
    if (!shared_.skip) {
      step(chunk);
    }
    if (of_.rest > 0) {
      round_stochastically(chunk.states[0], first, begin, count);
    }
    for (std::size_t at = 0; at < states; ++at) {
      store(chunk.states[at], first + at, begin, count);
    }
    return kernels<T>(call_->isa()).tally(count, before, chunk.states[0]);
  }

  const T* gradient(std::size_t at, Index begin, Index count, T* piece) const {
    const TensorView from = part(call_->input(at), begin, count);
    if (is_computed_in_place(from.type.dtype)) {
      return reinterpret_cast<const T*>(from.data);
    }
    convert(from, computed(piece, count));
    return piece;
  }

  // A state is updated where it is to be after the step; it is copied there first if that is
  // not where it was, or through `piece` if it is stored otherwise.
  T* state(std::size_t at, Index begin, Index count, T* piece) const {
    const TensorView before = part(call_->input(at), begin, count);
    const TensorView after = part(call_->output(at), begin, count);
    if (!is_computed_in_place(before.type.dtype)) {
      convert(before, computed(piece, count));
      return piece;
    }
    if (after.data != before.data) {
      std::memcpy(after.data, before.data, before.type.bytes());
    }
    return reinterpret_cast<T*>(after.data);
  }

  // To the nearest that the state's dtype has, and back: an update that is lost in the rounding
  // is none.
  void store(T* values, std::size_t at, Index begin, Index count) const {
    const TensorView after = part(call_->output(at), begin, count);
    if (!is_computed_in_place(after.type.dtype)) {
      convert(computed(values, count), after);
      convert(after, computed(values, count));
    }
  }

  void round_stochastically(T* values, std::size_t at, Index begin, Index count) const {
    const RandomKey key = random_key(*call_, of_.shared() + kSharedInputs);
    const KeyedRandom random(key.seed, call_->attributes().word("path"), key.attempt);
    std::array<std::uint32_t, kChunk> bits;
    // A parameter is one sample.
    random.fill_bits(0, static_cast<std::uint64_t>(begin),
                     {bits.data(), static_cast<std::size_t>(count)});
    const bool is_half = call_->input(at).type.dtype == DType::f16;
    for (Index each = 0; each < count; ++each) {
      const auto exact = static_cast<float>(values[each]);
      const std::uint32_t word = bits[static_cast<std::size_t>(each)];
      values[each] = is_half ? decode<DType::f16>(encode_stochastic<DType::f16>(exact, word))
                             : decode<DType::bf16>(encode_stochastic<DType::bf16>(exact, word));
    }
  }

  Call* call_;
  ParametersOfUpdate of_;
  Common shared_;
  T* pieces_;
};

// What follows is what PyTorch's unfused optimizers do to a parameter of a narrow dtype: every
// operation is computed in fp32 and rounded to that dtype (section 1.6 of the facts on mixed
// precision). Numbers that are the same for all elements are not rounded to it: eps 1e-8 is
// less than half of f16's smallest number, but its sum is what is rounded.

float narrow(double value) { return static_cast<float>(value); }

class RoundedAdamw {
 public:
  RoundedAdamw(const Attributes& attributes, const Common& common)
      : dtype_(attributes.dtype("math")),
        beta1_(attributes.number("beta1")),
        beta2_(attributes.number("beta2")),
        eps_(attributes.number("eps")),
        shrink_(1 - common.rate * attributes.number("decay")),
        step_size_(common.rate / (1 - std::pow(beta1_, static_cast<double>(common.step)))),
        root_(std::sqrt(1 - std::pow(beta2_, static_cast<double>(common.step)))),
        factor_(common.factor) {}

  void operator()(const Chunk<float>& chunk) const {
    for (Index at = 0; at < chunk.count; ++at) {
      update(chunk.states[0][at], chunk.states[1][at], chunk.states[2][at], chunk.gradient[at]);
    }
  }

 private:
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
  float round(float value) const { return rounded(dtype_, value); }

  DType dtype_;
  double beta1_, beta2_, eps_, shrink_, step_size_, root_, factor_;
};

class RoundedSgd {
 public:
  RoundedSgd(const Attributes& attributes, const Common& common)
      : dtype_(attributes.dtype("math")),
        momentum_(narrow(attributes.number("momentum"))),
        decay_(narrow(attributes.number("decay"))),
        rate_(narrow(common.rate)),
        factor_(narrow(common.factor)),
        is_first_(common.step == 1) {}

  void operator()(const Chunk<float>& chunk) const {
    for (Index at = 0; at < chunk.count; ++at) {
      update(chunk.states[0][at], chunk.states[1][at], chunk.gradient[at]);
    }
  }

 private:
  void update(float& parameter, float& momentum, float gradient) const {
    float g = round(gradient * factor_);
    if (decay_ != 0) {
      g = round(g + decay_ * parameter);
    }
    momentum = is_first_ ? g : round(round(momentum * momentum_) + g);
    parameter = round(parameter - rate_ * momentum);
  }
  float round(float value) const { return rounded(dtype_, value); }

  DType dtype_;
  float momentum_, decay_, rate_, factor_;
  bool is_first_;
};

template <class T>
void adamw(Call& call) {
  Update<T> update(call);
  AdamW<T> job{};
  job.lr = update.shared().rate;
  job.beta1 = call.attributes().number("beta1");
  job.beta2 = call.attributes().number("beta2");
  job.epsilon = call.attributes().number("eps");
  job.weight_decay = call.attributes().number("decay");
  job.step = update.shared().step;
  job.unscale = static_cast<T>(update.shared().factor);
  update.run([&call, &job](const Chunk<T>& chunk) {
    AdamW<T> own = job;
    own.count = chunk.count;
    own.parameters = chunk.states[0];
    own.first_moments = chunk.states[1];
    own.second_moments = chunk.states[2];
    own.gradients = chunk.gradient;
    kernels<T>(call.isa()).adamw(own);
  });
}

template <class T>
void sgd(Call& call) {
  Update<T> update(call);
  Sgd<T> job{};
  job.lr = update.shared().rate;
  job.momentum = call.attributes().number("momentum");
  job.weight_decay = call.attributes().number("decay");
  job.step = update.shared().step;
  job.unscale = static_cast<T>(update.shared().factor);
  update.run([&call, &job](const Chunk<T>& chunk) {
    Sgd<T> own = job;
    own.count = chunk.count;
    own.parameters = chunk.states[0];
    own.momenta = chunk.states[1];
    own.gradients = chunk.gradient;
    kernels<T>(call.isa()).sgd(own);
  });
}

template <class Rounded>
void rounded_step(Call& call) {
  Update<float> update(call);
  update.run(Rounded(call.attributes(), update.shared()));
}

}  // namespace

void run_adamw(Call& call) {
  const DType math = call.attributes().dtype("math");
  if (math == DType::f64) {
    return adamw<double>(call);
  }
  return math == DType::f32 ? adamw<float>(call) : rounded_step<RoundedAdamw>(call);
}

void run_sgd(Call& call) {
  const DType math = call.attributes().dtype("math");
  if (math == DType::f64) {
    return sgd<double>(call);
  }
  return math == DType::f32 ? sgd<float>(call) : rounded_step<RoundedSgd>(call);
}

}  // namespace halfwatt::cpu

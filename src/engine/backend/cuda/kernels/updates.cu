#include <vector>

#include "engine/backend/cuda/kernels/random.cuh"
#include "engine/backend/cuda/kernels/types.cuh"
#include "engine/backend/cuda/kernels/updates.h"

// Bound: bytes, one pass over all parameters of an update. Many tensors go in one launch, by a
// table among the kernel's arguments, which is why nothing has to be copied to the device.
//
// Compiled without contraction: every operation of an optimizer is rounded as PyTorch rounds
// it. Sums are in double and in an order that follows from the shapes alone.

namespace halfwatt::cuda {
namespace {

constexpr Index kChunk = 4096;  // elements of a block
constexpr int kMostOfLaunch = 48;

Index chunks_of(Index count) { return (count + kChunk - 1) / kChunk; }

/// Some of the tensors, and which chunk of the launch is the first of each.
template <class Each>
struct Table {
  int count = 0;
  Index chunks = 0;
  Index first[kMostOfLaunch];
  Each each[kMostOfLaunch];

  __device__ int owner(Index chunk) const {
    int at = count - 1;
    while (first[at] > chunk) {
      --at;
    }
    return at;
  }
};

/// Calls `launch(table, number of its first tensor)` with tables of all of them; the extent of
/// one is its `count`.
template <class Each, class Function>
void in_tables(std::span<const Each> all, Function&& launch) {
  for (std::size_t begin = 0; begin < all.size(); begin += kMostOfLaunch) {
    Table<Each> table;
    for (std::size_t at = begin; at < std::min(all.size(), begin + kMostOfLaunch); ++at) {
      table.first[table.count] = table.chunks;
      table.each[table.count++] = all[at];
      table.chunks += chunks_of(all[at].count);
    }
    launch(table, static_cast<int>(begin));
  }
}

// --- gradients ------------------------------------------------------------------------------

struct Partial {
  double squares;
  Index owner;
};

__global__ void square_sums_kernel(Table<Extent> table, int first_owner, Partial* to) {
  __shared__ double sums[kThreads / kWarp];
  const int owner = table.owner(blockIdx.x);
  const Extent& extent = table.each[owner];
  const Index begin = (Index{blockIdx.x} - table.first[owner]) * kChunk;
  const Index end = min(extent.count, begin + kChunk);
  double sum = 0;
  for (Index i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = load(extent.elements, i);
    sum += value * value;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) {
    sums[threadIdx.x / kWarp] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / kWarp; ++warp) {
      sum += sums[warp];
    }
    to[blockIdx.x] = {sum, Index{first_owner} + owner};
  }
}

__global__ void judge_kernel(const Partial* from,
                             Index count,
                             std::byte* found,
                             Elements squares,
                             std::int64_t* first_bad) {
  constexpr Index kNone = INT64_MAX;
  __shared__ double sums[kThreads];
  __shared__ Index bad[kThreads];
  double sum = 0;
  Index first = kNone;
  for (Index i = threadIdx.x; i < count; i += kThreads) {
    sum += from[i].squares;
    first = isfinite(from[i].squares) ? first : min(first, from[i].owner);
  }
  sums[threadIdx.x] = sum;
  bad[threadIdx.x] = first;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int thread = 1; thread < kThreads; ++thread) {
      sum += sums[thread];
      first = min(first, bad[thread]);
    }
    *reinterpret_cast<std::uint8_t*>(found) = first == kNone ? 0 : 1;
    store(squares, 0, static_cast<float>(sum));
    *first_bad = first == kNone ? -1 : first;
  }
}

__global__ void factor_kernel(
    Elements squares, Elements scale, double most, Elements factor, Elements norm) {
  const double inverse = 1 / static_cast<double>(load(scale, 0));
  const double length = sqrt(static_cast<double>(load(squares, 0))) * inverse;
  double clip = most > 0 ? most / (length + 1e-6) : 1.0;
  clip = clip > 1 ? 1 : clip;  // a norm that is no number makes every gradient none
  store(factor, 0, static_cast<float>(inverse * clip));
  store(norm, 0, static_cast<float>(length));
}

__global__ void learning_rate_kernel(const std::int64_t* applied,
                                     Schedule schedule,
                                     Elements rate) {
  const auto step = static_cast<double>(*applied);
  const auto warmup = static_cast<double>(schedule.warmup);
  const auto total = static_cast<double>(schedule.total);
  double share = 1;
  if (step < warmup) {
    share = (step + 1) / (warmup + 1);
  } else if (schedule.kind != Schedule::Kind::constant && total > warmup) {
    const double done = fmin(1.0, (step - warmup) / (total - warmup));
    const double left =
        schedule.kind == Schedule::Kind::cosine ? (1 + cospi(done)) / 2 : 1 - done;
    share = schedule.floor + (1 - schedule.floor) * left;
  }
  store(rate, 0, static_cast<float>(schedule.base * share));
}

// --- optimizers -----------------------------------------------------------------------------

/// base^exponent, by squaring.
__device__ double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    result *= exponent % 2 != 0 ? base : 1;
  }
  return result;
}

/// A parameter and its moments.
struct States {
  float parameter, first, second;
};

/// `value` in `math` and back; as it is where that is f32.
__device__ float rounded_to(DType math, float value) {
  switch (math) {
    case DType::f16:
      return rounded<DType::f16>(value);
    case DType::bf16:
      return rounded<DType::bf16>(value);
    default:
      return value;
  }
}

class AdamwStep {
 public:
  __device__ explicit AdamwStep(const Update& of) : math_(of.math) {
    const double rate = static_cast<double>(load(of.rate, 0));
    const std::int64_t step = *of.applied + 1;
    const double correction1 = 1 - power(of.beta1, step);
    const double correction2 = 1 - power(of.beta2, step);
    factor_ = load(of.factor, 0);
    keep_ = static_cast<float>(1 - rate * of.decay);
    fresh1_ = static_cast<float>(1 - of.beta1);
    beta2_ = static_cast<float>(of.beta2);
    fresh2_ = static_cast<float>(1 - of.beta2);
    root_ = static_cast<float>(sqrt(correction2));
    eps_ = static_cast<float>(of.eps);
    step_size_ = static_cast<float>(rate / correction1);
  }

  // In fp32 the rounding is none, and this is what the CPU's kernel does.
  __device__ void operator()(States& states, float gradient) const {
    const float g = round(gradient * factor_);
    const float parameter = round(states.parameter * keep_);
    states.first = round(states.first + fresh1_ * (g - states.first));
    states.second = round(round(states.second * beta2_) + fresh2_ * g * g);
    float denominator = round(sqrtf(states.second));
    denominator = round(denominator / root_);
    denominator = round(denominator + eps_);
    states.parameter = round(parameter - step_size_ * (states.first / denominator));
  }

 private:
  __device__ float round(float value) const { return rounded_to(math_, value); }

  DType math_;
  float factor_, keep_, fresh1_, beta2_, fresh2_, root_, eps_, step_size_;
};

class SgdStep {
 public:
  __device__ explicit SgdStep(const Update& of)
      : math_(of.math),
        factor_(load(of.factor, 0)),
        rate_(load(of.rate, 0)),
        decay_(static_cast<float>(of.decay)),
        momentum_(static_cast<float>(of.momentum)),
        is_first_(*of.applied == 0) {}

  __device__ void operator()(States& states, float gradient) const {
    float g = round(gradient * factor_);
    if (decay_ != 0) {  // 0 * inf would be NaN
      g = round(g + decay_ * states.parameter);
    }
    states.first = is_first_ ? g : round(round(states.first * momentum_) + g);
    states.parameter = round(states.parameter - rate_ * states.first);
  }

 private:
  __device__ float round(float value) const { return rounded_to(math_, value); }

  DType math_;
  float factor_, rate_, decay_, momentum_;
  bool is_first_;
};

__device__ float stochastically(const DeviceRandom& random,
                                DType dtype,
                                float value,
                                Index element) {
  const std::uint32_t bits = random.bits(0, static_cast<std::uint64_t>(element));
  return dtype == DType::f16 ? decode<DType::f16>(encode_stochastic<DType::f16>(value, bits))
                             : decode<DType::bf16>(encode_stochastic<DType::bf16>(value, bits));
}

__device__ Elements at(const std::byte* data, DType dtype) {
  return {const_cast<std::byte*>(data), dtype};
}

template <class Step, int kMoments>
__global__ void update_kernel(Table<UpdatedParameter> table, Update of) {
  const UpdatedParameter& own = table.each[table.owner(blockIdx.x)];
  const Index begin = (Index{blockIdx.x} - table.first[table.owner(blockIdx.x)]) * kChunk;
  const Index end = min(own.count, begin + kChunk);
  const Step step(of);
  const bool skip = *of.skip != 0;
  const bool is_random = of.rounds_stochastically;
  const std::int64_t no_key[3] = {};
  const DeviceRandom random(is_random ? of.random : RandomSource{no_key, 0});
  int not_finite = 0;
  int unchanged = 0;
  for (Index i = begin + threadIdx.x; i < end; i += kThreads) {
    States states{load(at(own.before[0], of.parameter), i),
                  load(at(own.before[1], of.moment), i),
                  kMoments > 1 ? load(at(own.before[2], of.moment), i) : 0.0F};
    const float before = states.parameter;
    if (!skip) {
      step(states, load(at(own.gradient, of.gradient), i));
    }
    if (is_random) {
      states.parameter = stochastically(random, of.parameter, states.parameter, i);
    }
    store({own.after[0], of.parameter}, i, states.parameter);
    store({own.after[1], of.moment}, i, states.first);
    if (kMoments > 1) {
      store({own.after[2], of.moment}, i, states.second);
    }
    // As it is stored: an update that is lost in the rounding is none.
    const float after = rounded_to(of.parameter, states.parameter);
    not_finite += isfinite(after) ? 0 : 1;
    unchanged += after == before ? 1 : 0;
  }
  not_finite = warp_sum(not_finite);
  unchanged = warp_sum(unchanged);
  if (threadIdx.x % kWarp == 0) {  // of whole numbers: the order does not show
    auto* const tally = reinterpret_cast<unsigned long long*>(own.tally);
    atomicAdd(tally, static_cast<unsigned long long>(not_finite));
    atomicAdd(tally + 1, static_cast<unsigned long long>(unchanged));
  }
}

__global__ void clear_tallies_kernel(Table<UpdatedParameter> table) {
  if (static_cast<int>(threadIdx.x) < table.count) {
    table.each[threadIdx.x].tally[0] = 0;
    table.each[threadIdx.x].tally[1] = 0;
  }
}

template <class Step, int kMoments>
void update_all(Stream stream, const Update& of, std::span<const UpdatedParameter> parameters) {
  in_tables(parameters, [&](const Table<UpdatedParameter>& table, int) {
    clear_tallies_kernel<<<1, kMostOfLaunch, 0, stream>>>(table);
    if (table.chunks > 0) {
      update_kernel<Step, kMoments>
          <<<static_cast<unsigned>(table.chunks), kThreads, 0, stream>>>(table, of);
    }
  });
  check_launch("update");
}

// --- scalars --------------------------------------------------------------------------------

__global__ void ema_kernel(Elements before,
                           Elements parameter,
                           const std::uint8_t* skip,
                           float decay,
                           float fresh,
                           Elements after,
                           Index count) {
  each(count, [&](Index i) {
    const float average = load(before, i);
    store(after, i, *skip != 0 ? average : decay * average + fresh * load(parameter, i));
  });
}

__global__ void advance_kernel(const std::int64_t* before,
                               const std::uint8_t* skip,
                               std::int64_t* after) {
  *after = *before + (*skip != 0 ? 0 : 1);
}

__global__ void scale_kernel(Elements before,
                             const std::int32_t* age_before,
                             const std::uint8_t* skip,
                             ScaleRule rule,
                             Elements after,
                             std::int32_t* age_after) {
  float scale = load(before, 0);
  std::int32_t age = *age_before;
  if (*skip != 0) {
    scale = fmaxf(scale * rule.backoff, rule.floor);
    age = 0;
  } else if (++age >= rule.interval) {
    const float grown = scale * rule.growth;
    scale = isfinite(grown) ? grown : scale;
    age = 0;
  }
  store(after, 0, scale);
  *age_after = age;
}

}  // namespace

std::size_t check_gradients_bytes(std::span<const Extent> gradients) {
  Index chunks = 0;
  for (const Extent& each : gradients) {
    chunks += chunks_of(each.count);
  }
  return static_cast<std::size_t>(chunks) * sizeof(Partial);
}

void check_gradients(Stream stream,
                     std::span<const Extent> gradients,
                     std::byte* found,
                     Elements squares,
                     std::int64_t* first_bad,
                     std::byte* workspace) {
  auto* const partials = reinterpret_cast<Partial*>(workspace);
  Index chunks = 0;
  in_tables(gradients, [&](const Table<Extent>& table, int first_owner) {
    if (table.chunks > 0) {
      square_sums_kernel<<<static_cast<unsigned>(table.chunks), kThreads, 0, stream>>>(
          table, first_owner, partials + chunks);
      chunks += table.chunks;
    }
  });
  judge_kernel<<<1, kThreads, 0, stream>>>(partials, chunks, found, squares, first_bad);
  check_launch("check_gradients");
}

void gradient_factor(Stream stream,
                     Elements squares,
                     Elements scale,
                     double most,
                     Elements factor,
                     Elements norm) {
  factor_kernel<<<1, 1, 0, stream>>>(squares, scale, most, factor, norm);
  check_launch("gradient_factor");
}

void learning_rate(Stream stream,
                   const std::int64_t* applied,
                   const Schedule& schedule,
                   Elements rate) {
  learning_rate_kernel<<<1, 1, 0, stream>>>(applied, schedule, rate);
  check_launch("learning_rate");
}

void adamw(Stream stream, const Update& update, std::span<const UpdatedParameter> parameters) {
  update_all<AdamwStep, 2>(stream, update, parameters);
}

void sgd(Stream stream, const Update& update, std::span<const UpdatedParameter> parameters) {
  update_all<SgdStep, 1>(stream, update, parameters);
}

void ema(Stream stream,
         Elements before,
         Elements parameter,
         const std::uint8_t* skip,
         double decay,
         Elements after,
         Index count) {
  if (count > 0) {
    ema_kernel<<<blocks_for(count), kThreads, 0, stream>>>(
        before, parameter, skip, static_cast<float>(decay), 1 - static_cast<float>(decay),
        after, count);
  }
  check_launch("ema");
}

void advance(Stream stream,
             const std::int64_t* before,
             const std::uint8_t* skip,
             std::int64_t* after) {
  advance_kernel<<<1, 1, 0, stream>>>(before, skip, after);
  check_launch("advance");
}

void update_scale(Stream stream,
                  Elements before,
                  const std::int32_t* age_before,
                  const std::uint8_t* skip,
                  const ScaleRule& rule,
                  Elements after,
                  std::int32_t* age_after) {
  scale_kernel<<<1, 1, 0, stream>>>(before, age_before, skip, rule, after, age_after);
  check_launch("update_scale");
}

}  // namespace halfwatt::cuda

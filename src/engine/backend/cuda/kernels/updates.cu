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

constexpr Index kChunk = 4096;  // elements of a block, whole eights
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

struct Gradient {
  Elements elements;
  Index count;
  bool is_in_eights;
};

struct Partial {
  double squares;
  Index owner;
};

__global__ void square_sums_kernel(Table<Gradient> table, int first_owner, Partial* to) {
  __shared__ double sums[kThreads / kWarp];
  const int owner = table.owner(blockIdx.x);
  const Gradient& extent = table.each[owner];
  const Index begin = (Index{blockIdx.x} - table.first[owner]) * kChunk;
  const Index end = min(extent.count, begin + kChunk);
  double sum = 0;
  const Index eights = extent.is_in_eights ? (end - begin) / kEight : 0;
  for (Index at = threadIdx.x; at < eights; at += kThreads) {
    float values[kEight];
    load_eight(extent.elements, begin + at * kEight, values);
#pragma unroll
    for (const float value : values) {
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  for (Index i = begin + eights * kEight + threadIdx.x; i < end; i += kThreads) {
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
  const GradientFactor found = gradient_factor_of(load(squares, 0), load(scale, 0), most);
  store(factor, 0, static_cast<float>(found.factor));
  store(norm, 0, static_cast<float>(found.norm));
}

__global__ void learning_rate_kernel(const std::int64_t* applied,
                                     Schedule schedule,
                                     Elements rate) {
  store(rate, 0, static_cast<float>(learning_rate_of(schedule, *applied)));
}

// --- optimizers -----------------------------------------------------------------------------

__device__ OptimizerNumbers numbers_of(const Update& of) {
  return {of.math, load(of.factor, 0), load(of.rate, 0), of.beta1,       of.beta2,
          of.eps,  of.decay,           of.momentum,      *of.applied + 1};
}

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

/// What a thread found of its elements.
struct Tally {
  int not_finite = 0, unchanged = 0;

  // As it is stored: an update that is lost in the rounding is none.
  __device__ void add(DType dtype, float before, float after) {
    after = rounded_to(dtype, after);
    not_finite += isfinite(after) ? 0 : 1;
    unchanged += after == before ? 1 : 0;
  }
  __device__ void add_to(std::int64_t* tally) {
    not_finite = warp_sum(not_finite);
    unchanged = warp_sum(unchanged);
    if (threadIdx.x % kWarp == 0) {  // of whole numbers: the order does not show
      auto* const to = reinterpret_cast<unsigned long long*>(tally);
      atomicAdd(to, static_cast<unsigned long long>(not_finite));
      atomicAdd(to + 1, static_cast<unsigned long long>(unchanged));
    }
  }
};

template <class Step, int kMoments>
__global__ void update_kernel(Table<UpdatedParameter> table, Update of) {
  const int owner = table.owner(blockIdx.x);
  const UpdatedParameter& own = table.each[owner];
  const Index begin = (Index{blockIdx.x} - table.first[owner]) * kChunk;
  const Index end = min(own.count, begin + kChunk);
  const Step step(numbers_of(of));
  const bool skip = *of.skip != 0;
  const bool is_random = of.rounds_stochastically;
  const std::int64_t no_key[3] = {};
  const DeviceRandom random(is_random ? of.random : RandomSource{no_key, 0});
  Tally tally;
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
    tally.add(of.parameter, before, states.parameter);
  }
  tally.add_to(own.tally);
}

// The same for tensors whose elements are whole eights, without stochastic rounding.
template <class Step, int kMoments, DType Parameter, DType Moment, DType Gradient>
__global__ void update_eights_kernel(Table<UpdatedParameter> table, Update of) {
  const int owner = table.owner(blockIdx.x);
  const UpdatedParameter& own = table.each[owner];
  const Index begin = (Index{blockIdx.x} - table.first[owner]) * kChunk;
  const Index end = min(own.count, begin + kChunk);
  const Step step(numbers_of(of));
  const bool skip = *of.skip != 0;
  Tally tally;
  for (Index first = begin + threadIdx.x * kEight; first < end; first += kThreads * kEight) {
    float parameter[kEight];
    float one[kEight];
    float two[kEight] = {};
    float gradient[kEight];
    load_eight<Parameter>(own.before[0], first, parameter);
    load_eight<Moment>(own.before[1], first, one);
    if (kMoments > 1) {
      load_eight<Moment>(own.before[2], first, two);
    }
    load_eight<Gradient>(own.gradient, first, gradient);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      States states{parameter[i], one[i], two[i]};
      if (!skip) {
        step(states, gradient[i]);
      }
      tally.add(Parameter, parameter[i], states.parameter);
      parameter[i] = states.parameter;
      one[i] = states.first;
      two[i] = states.second;
    }
    store_eight<Parameter>(own.after[0], first, parameter);
    store_eight<Moment>(own.after[1], first, one);
    if (kMoments > 1) {
      store_eight<Moment>(own.after[2], first, two);
    }
  }
  tally.add_to(own.tally);
}

bool is_in_eights(const UpdatedParameter& of) {
  bool all = of.count % kEight == 0;
  for (const std::byte* const each :
       {of.before[0], of.before[1], of.before[2], static_cast<const std::byte*>(of.after[0]),
        static_cast<const std::byte*>(of.after[1]), static_cast<const std::byte*>(of.after[2]),
        of.gradient}) {
    all = all && reinterpret_cast<std::uintptr_t>(each) % 16 == 0;
  }
  return all;
}

/// Calls `function(parameter, moment, gradient)` with the dtypes as tags, where they are as
/// modes of training have them; whether it did.
template <class Function>
bool with_usual_dtypes(const Update& of, Function&& function) {
  bool done = false;
  const auto try_with = [&](auto parameter, auto moment, auto gradient) {
    if (!done && of.parameter == parameter.kDType && of.moment == moment.kDType &&
        of.gradient == gradient.kDType) {
      function(parameter, moment, gradient);
      done = true;
    }
  };
  const Tag<DType::f32> f32;
  const Tag<DType::f16> f16;
  const Tag<DType::bf16> bf16;
  try_with(f32, f32, f32);
  try_with(f32, f32, f16);
  try_with(f32, f32, bf16);
  try_with(f16, f32, f16);
  try_with(bf16, f32, bf16);
  try_with(f16, f16, f16);
  try_with(bf16, bf16, bf16);
  return done;
}

__global__ void clear_tallies_kernel(Table<UpdatedParameter> table) {
  if (static_cast<int>(threadIdx.x) < table.count) {
    table.each[threadIdx.x].tally[0] = 0;
    table.each[threadIdx.x].tally[1] = 0;
  }
}

template <class Step, int kMoments>
void update_all(Stream stream, const Update& of, std::span<const UpdatedParameter> parameters) {
  std::vector<UpdatedParameter> in_eights;
  std::vector<UpdatedParameter> others;
  for (const UpdatedParameter& each : parameters) {
    const bool fits = !of.rounds_stochastically && is_in_eights(each);
    (fits ? in_eights : others).push_back(each);
  }
  const auto run = [&](const std::vector<UpdatedParameter>& some, auto kernel) {
    in_tables(std::span<const UpdatedParameter>(some), [&](const Table<UpdatedParameter>& table,
                                                           int) {
      clear_tallies_kernel<<<1, kMostOfLaunch, 0, stream>>>(table);
      if (table.chunks > 0) {
        kernel<<<static_cast<unsigned>(table.chunks), kThreads, 0, stream>>>(table, of);
      }
    });
  };
  const bool are_usual = with_usual_dtypes(of, [&](auto parameter, auto moment, auto gradient) {
    run(in_eights, update_eights_kernel<Step, kMoments, decltype(parameter)::kDType,
                                        decltype(moment)::kDType, decltype(gradient)::kDType>);
  });
  if (!are_usual) {
    run(in_eights, update_kernel<Step, kMoments>);
  }
  run(others, update_kernel<Step, kMoments>);
  check_launch("update");
}

// --- the rest of a step ---------------------------------------------------------------------

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
  const ScaleAge next = next_scale({load(before, 0), *age_before}, *skip != 0, rule);
  store(after, 0, next.scale);
  *age_after = next.age;
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
  std::vector<Gradient> all;
  for (const Extent& each : gradients) {
    const bool is_float =
        each.elements.dtype == DType::f32 || bytes_of(each.elements.dtype) == 2;
    all.push_back({each.elements, each.count, is_float && is_in_eights(each.elements)});
  }
  Index chunks = 0;
  in_tables(std::span<const Gradient>(all), [&](const Table<Gradient>& table, int first_owner) {
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

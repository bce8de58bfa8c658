#include "engine/backend/cuda/kernels/updates.h"

#include <vector>

#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/kernels/quantise.h"
#include "engine/backend/cuda/planted.h"
#include "engine/ops/optimizer.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt::cuda {
namespace {

Update update_of(const Call& call, const ParametersOfUpdate& of) {
  const std::size_t shared = of.shared();
  Update update{};
  update.parameter = call.input(0).type.dtype;
  update.moment = call.input(1).type.dtype;
  update.gradient = call.input(of.each - 1).type.dtype;
  update.math = call.attributes().dtype("math");
  update.factor = call.in(shared);
  update.rate = call.in(shared + 1);
  update.applied = call.in_as<std::int64_t>(shared + 2);
  update.skip = call.in_as<std::uint8_t>(shared + 3);
  update.decay = call.attributes().number("decay");
  if (of.rest > 0) {
    update.rounds_stochastically = true;
    update.random = {call.in_as<std::int64_t>(shared + kSharedInputs),
                     fnv1a(call.attributes().word("path"))};
  }
  return update;
}

std::vector<UpdatedParameter> parameters_in(const Call& call, const ParametersOfUpdate& of) {
  std::vector<UpdatedParameter> all;
  for (std::size_t at = 0; at < of.count; ++at) {
    const std::size_t first = at * of.each;
    UpdatedParameter one{};
    one.count = call.count(first);
    for (std::size_t state = 0; state + 1 < of.each; ++state) {
      one.before[state] = call.input(first + state).data;
      one.after[state] = call.output(first + state).data;
    }
    one.gradient = call.input(first + of.each - 1).data;
    one.tally = call.out_as<std::int64_t>(first + of.each - 1);
    all.push_back(one);
  }
  return all;
}

Schedule::Kind kind_of(const std::string& schedule) {
  return schedule == "cosine"   ? Schedule::Kind::cosine
         : schedule == "linear" ? Schedule::Kind::linear
                                : Schedule::Kind::constant;
}

}  // namespace

void run_check_gradients(Call& call) {
  std::vector<Extent> gradients;
  for (std::size_t at = 0; at < call.inputs() - planted(Fault::lost_found_inf); ++at) {
    gradients.push_back({call.in(at), call.count(at)});
  }
  std::byte* const workspace = call.scratch(check_gradients_bytes(gradients));
  if (!call.is_dry()) {
    check_gradients(call.stream(), gradients, call.output(0).data, call.out(1),
                    call.out_as<std::int64_t>(2), workspace);
  }
}

void run_gradient_factor(Call& call) {
  if (!call.is_dry()) {
    gradient_factor(call.stream(), call.in(0), call.in(1), call.attributes().number("max_norm"),
                    call.out(0), call.out(1));
  }
}

void run_learning_rate(Call& call) {
  if (!call.is_dry()) {
    const Attributes& attributes = call.attributes();
    Schedule schedule;
    schedule.kind = kind_of(attributes.word("schedule"));
    schedule.base = attributes.number("base");
    schedule.floor = attributes.number("floor");
    schedule.warmup = attributes.integer("warmup");
    schedule.total = attributes.integer("total");
    learning_rate(call.stream(), call.in_as<std::int64_t>(0), schedule, call.out(0));
  }
}

void run_adamw(Call& call) {
  if (!call.is_dry()) {
    const ParametersOfUpdate of = parameters_of(Op::adamw, call.inputs());
    Update update = update_of(call, of);
    update.beta1 = call.attributes().number("beta1");
    update.beta2 = call.attributes().number("beta2");
    update.eps = call.attributes().number("eps");
    adamw(call.stream(), update, parameters_in(call, of));
  }
}

void run_sgd(Call& call) {
  if (!call.is_dry()) {
    const ParametersOfUpdate of = parameters_of(Op::sgd, call.inputs());
    Update update = update_of(call, of);
    update.momentum = call.attributes().number("momentum");
    sgd(call.stream(), update, parameters_in(call, of));
  }
}

void run_ema(Call& call) {
  if (!call.is_dry()) {
    ema(call.stream(), call.in(0), call.in(1), call.in_as<std::uint8_t>(2),
        call.attributes().number("decay"), call.out(0), call.count(0));
  }
}

void run_advance(Call& call) {
  if (!call.is_dry()) {
    advance(call.stream(), call.in_as<std::int64_t>(0), call.in_as<std::uint8_t>(1),
            call.out_as<std::int64_t>(0));
  }
}

void run_update_scale(Call& call) {
  if (!call.is_dry()) {
    const Attributes& attributes = call.attributes();
    update_scale(
        call.stream(), call.in(0), call.in_as<std::int32_t>(1), call.in_as<std::uint8_t>(2),
        {static_cast<float>(attributes.number("growth")),
         static_cast<float>(attributes.number("backoff")),
         static_cast<float>(attributes.number("floor")), attributes.integer("interval")},
        call.out(0), call.out_as<std::int32_t>(1));
  }
}

void run_observe_amax(Call& call) {
  if (!call.is_dry()) {
    const Index steps = call.count(0);
    const auto* history = call.in_as<float>(0);
    for (std::size_t at = 1; at < call.inputs(); ++at) {
      observe_amax(call.stream(), history, call.in_as<float>(at), steps, call.out_as<float>(0));
      history = call.out_as<float>(0);
    }
  }
}

void run_rescale(Call& call) {
  if (!call.is_dry()) {
    const Attributes& attributes = call.attributes();
    Rescale job{};
    job.history = call.in_as<float>(0);
    job.scale = call.in_as<float>(1);
    job.skip = call.in_as<std::uint8_t>(2);
    job.steps = call.count(0);
    job.format = attributes.dtype("format");
    job.margin = static_cast<int>(attributes.integer("margin"));
    job.most_recent = attributes.word("algorithm") != "max";
    job.new_history = call.out_as<float>(0);
    job.new_scale = call.out_as<float>(1);
    job.amax = call.out_as<float>(2);
    rescale(call.stream(), job);
  }
}

}  // namespace halfwatt::cuda

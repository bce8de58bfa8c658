#include "engine/backend/cuda/kernels/elements.h"

#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/planted.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt::cuda {
namespace {

RandomSource random_source(const Call& call, std::size_t key) {
  return {call.in_as<std::int64_t>(key), fnv1a(call.attributes().word("path"))};
}

/// Elements of a sample.
Index sample_width(const Call& call) {
  const Shape& shape = call.input(0).type.shape;
  return shape[0] == 0 ? 1 : shape.elements() / shape[0];
}

}  // namespace

void run_cast(Call& call) {
  const bool is_stale = planted(Fault::stale_copy) && call.node().phase == Phase::update;
  if (!call.is_dry() && !is_stale) {
    convert(call.stream(), call.in(0), call.out(0), call.count(0));
  }
}

void run_normalise(Call& call) {
  if (!call.is_dry()) {
    const Shape& shape = call.input(0).type.shape;
    const std::vector<double>& means = call.attributes().numbers("mean");
    const std::vector<double>& deviations = call.attributes().numbers("deviation");
    ChannelNorms by;
    by.channels = static_cast<int>(shape[1]);
    for (int at = 0; at < by.channels; ++at) {
      by.mean[at] = static_cast<float>(means[static_cast<std::size_t>(at)]);
      by.deviation[at] = static_cast<float>(deviations[static_cast<std::size_t>(at)]);
    }
    normalise(call.stream(), call.in(0), call.out(0), shape[0] * shape[1], shape[2] * shape[3],
              by);
  }
}

void run_add(Call& call) {
  if (!call.is_dry()) {
    add(call.stream(), call.in(0), call.in(1), call.out(0), call.count(0), call.count(1));
  }
}

void run_scale(Call& call) {
  if (!call.is_dry()) {
    const bool is_constant = call.inputs() == 1;
    scale(call.stream(), call.in(0),
          is_constant ? static_cast<float>(call.attributes().number("factor")) : 1.0F,
          is_constant ? Elements() : call.in(1), call.out(0), call.count(0));
  }
}

void run_gelu(Call& call) {
  if (!call.is_dry()) {
    gelu(call.stream(), call.in(0), call.out(0), call.count(0));
  }
}

void run_gelu_gradient(Call& call) {
  if (!call.is_dry()) {
    gelu_gradient(call.stream(), call.in(0), call.in(1), call.out(0), call.count(0));
  }
}

void run_dropout(Call& call) {
  if (!call.is_dry()) {
    dropout(call.stream(), call.in(0), call.out(0), call.count(0), sample_width(call),
            call.attributes().number("rate"), random_source(call, 1));
  }
}

void run_drop_path(Call& call) {
  if (!call.is_dry()) {
    drop_path(call.stream(), call.in(0), call.out(0), call.count(0), sample_width(call),
              call.attributes().number("rate"), random_source(call, 1));
  }
}

void run_constant(Call& call) {
  if (!call.is_dry()) {
    fill(call.stream(), call.out(0), call.attributes().number("value"),
         call.output(0).type.shape.elements());
  }
}

}  // namespace halfwatt::cuda

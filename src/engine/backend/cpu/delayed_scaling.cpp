#include "engine/ops/delayed_scaling.h"

#include <algorithm>
#include <cstring>

#include "engine/backend/cpu/bindings.h"
#include "engine/backend/cpu/operands.h"

namespace halfwatt::cpu {
namespace {

// The history of input 0 where output 0 is to be.
float* moved_history(Call& call) {
  auto* const to = reinterpret_cast<float*>(call.output(0).data);
  const std::byte* const from = call.input(0).data;
  if (call.output(0).data != from) {
    std::memcpy(to, from, call.input(0).type.bytes());
  }
  return to;
}

}  // namespace

void run_observe_amax(Call& call) {
  if (call.is_dry()) {
    return;
  }
  float* const history = moved_history(call);
  for (std::size_t at = 1; at < call.inputs(); ++at) {
    const float both[] = {history[0], call.scalar<float>(at)};
    history[0] = largest_magnitude(both, 2);
  }
}

void run_rescale(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Attributes& attributes = call.attributes();
  float* const history = moved_history(call);
  const Index steps = call.input(0).type.shape[0];
  const float amax = history[0];
  auto scale = call.scalar<float>(1);
  // NaN is no 0: its step has been.
  if (!call.scalar<bool>(2) && amax != 0) {
    const Index seen = attributes.word("algorithm") == "max" ? steps : 1;
    scale = scale_to(attributes.dtype("format"), largest_magnitude(history, seen),
                     static_cast<int>(attributes.integer("margin")), scale);
    std::rotate(history, history + 1, history + steps);
  }
  history[0] = 0;
  *reinterpret_cast<float*>(call.output(1).data) = scale;
  *reinterpret_cast<float*>(call.output(2).data) = amax;
}

}  // namespace halfwatt::cpu

#include "engine/ops/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

const TensorType kScalar{DType::f32, Shape()};

Result<void> check_history(const TensorType& type) {
  if (type.dtype != DType::f32 || type.shape.rank() != 1 || type.shape[0] < 1) {
    return bad_input(fmt::format("a history of {}, needs an f32 vector", text(type)));
  }
  return {};
}

// inputs: a history, and the largest magnitudes of all that was rounded with its scale. Output:
// the history, its element 0 the largest of them and of what it was; NaN if one of them is.
Result<Types> observe_outputs(const Node&, Inputs inputs) {
  if (const auto fits = check_history(inputs[0]); !fits) {
    return fits.error();
  }
  for (const TensorType& each : inputs.subspan(1)) {
    if (!(each == kScalar)) {
      return bad_input(fmt::format("an amax of {}, needs an f32 scalar", text(each)));
    }
  }
  return Types{inputs[0]};
}

// inputs: a history, its scale, whether to leave both. attributes `format`: an fp8; `margin`,
// an integer; `algorithm`: max (of the history) or most_recent. Outputs: the history one step
// further, its element 0 again 0; the scale, the format's largest number over the amax, halved
// `margin` times, but what it was where the amax is 0 or not finite; and the amax of this step.
// As Transformer Engine's delayed scaling, section 1.9 of the facts on mixed precision: a step
// whose amax is 0 did not use the operand and is no step of its history. A skipped step leaves
// history and scale as they were before it.
Result<Types> rescale_outputs(const Node&, Inputs inputs) {
  if (const auto fits = check_history(inputs[0]); !fits) {
    return fits.error();
  }
  if (!(inputs[1] == kScalar) || !(inputs[2] == TensorType{DType::boolean, Shape()})) {
    return bad_input(fmt::format("a scale and a flag of {} and {}, needs an f32 and a bool",
                                 text(inputs[1]), text(inputs[2])));
  }
  return Types{inputs[0], inputs[1], kScalar};
}

}  // namespace

std::string_view text(Fp8Operand operand) {
  switch (operand) {
    case Fp8Operand::input:
      return "input";
    case Fp8Operand::weight:
      return "weight";
    case Fp8Operand::gradient:
      break;
  }
  return "gradient";
}

std::string fp8_operand_name(std::string_view layer, Fp8Operand operand) {
  return fmt::format("{}.{}", layer, text(operand));
}

std::string fp8_scale_name(std::string_view layer, Fp8Operand operand) {
  return fmt::format("{}{}", fp8_operand_name(layer, operand), kFp8Scale);
}

std::string fp8_history_name(std::string_view layer, Fp8Operand operand) {
  return fmt::format("{}{}", fp8_operand_name(layer, operand), kFp8History);
}

std::string fp8_history_of(std::string_view scale) {
  HALFWATT_CHECK(scale.ends_with(kFp8Scale), "the name of a scale");
  return fmt::format("{}{}", scale.substr(0, scale.size() - kFp8Scale.size()), kFp8History);
}

float scale_to(DType format, float amax, int margin, float otherwise) {
  if (!(amax > 0) || !std::isfinite(amax)) {
    return otherwise;
  }
  const float wanted = std::ldexp(static_cast<float>(facts(format).max) / amax, -margin);
  return std::min(wanted, std::numeric_limits<float>::max());
}

const OpDef kObserveAmax{
    Op::observe_amax, "observe_amax", NumericClass::update, 2, kAnyNumber, observe_outputs,
    nullptr,          nullptr,        InPlace::matching};
const OpDef kRescale{Op::rescale, "rescale", NumericClass::update, 3, 3, rescale_outputs,
                     nullptr,     nullptr,   InPlace::matching};

}  // namespace halfwatt

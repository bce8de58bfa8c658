#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

const TensorType kFlag{DType::boolean, Shape()};
const TensorType kCount{DType::i64, Shape()};

bool is_scalar(const TensorType& type) {
  return is_float(type.dtype) && type.shape.elements() == 1;
}

Error not_scalar(std::string_view what, const TensorType& found) {
  return bad_input(fmt::format("{} of {}, needs a scalar", what, text(found)));
}

// Every gradient of a step, still scaled. Outputs: whether any element is not finite, the sum
// of all squares, wide, and the number of the first gradient that is not finite, -1 if all are.
Result<Types> check_outputs(const Node&, Inputs inputs) {
  if (!all_floats(inputs)) {
    return not_floats(inputs);
  }
  return Types{kFlag, {wide(inputs[0].dtype), Shape()}, kCount};
}

// inputs: sum of squares, loss scale. attribute `max_norm`, 0 for no clipping. Outputs: what
// gradients are to be multiplied with, 1 / scale, clipped; and their norm without the scale.
// Found infinities were latched before: a clipped infinite norm gives 0, and 0 times inf is
// NaN.
Result<Types> factor_outputs(const Node&, Inputs inputs) {
  for (const TensorType& each : inputs) {
    if (!is_scalar(each)) {
      return not_scalar("a norm or scale", each);
    }
  }
  return Types{inputs[0], inputs[0]};
}

// inputs: how many steps were applied. attributes `schedule` (constant, cosine, linear),
// `base`, `warmup` and `total` in steps, `floor`, `dtype`.
Result<Types> rate_outputs(const Node& node, Inputs inputs) {
  if (!(inputs[0] == kCount)) {
    return bad_input(fmt::format("a counter of {}, needs an i64", text(inputs[0])));
  }
  return Types{{node.attributes.dtype("dtype"), Shape()}};
}

Result<void> check_counter(Inputs inputs) {
  if (!(inputs[0] == kCount) || !(inputs[1] == kFlag)) {
    return bad_input(fmt::format("a counter and a flag of {} and {}, needs an i64 and a bool",
                                 text(inputs[0]), text(inputs[1])));
  }
  return {};
}

Result<Types> advance_outputs(const Node&, Inputs inputs) {
  if (const auto fits = check_counter(inputs); !fits) {
    return fits.error();
  }
  return Types{inputs[0]};
}

// The last inputs of an optimizer: gradient, factor, rate, steps applied, whether to skip.
Result<void> check_optimizer(Inputs inputs, std::size_t gradient) {
  for (const TensorType& each : inputs.first(gradient + 1)) {
    if (!is_float(each.dtype) || !(each.shape == inputs[0].shape)) {
      return differ("the parameter and its gradient or moment", inputs[0], each);
    }
  }
  for (const TensorType& each : inputs.subspan(gradient + 1, 2)) {
    if (!is_scalar(each)) {
      return not_scalar("a factor or rate", each);
    }
  }
  return check_counter(inputs.subspan(gradient + 3, 2));
}

// Not finite, unchanged: how many elements of the parameter are so after the step.
const TensorType kTally{DType::i64, Shape{2}};

// inputs: parameter, first and second moment, gradient, factor, rate, applied, skip.
// attributes `beta1`, `beta2`, `eps`, `decay`, `math`: the dtype of the arithmetic. Decoupled
// decay (Loshchilov and Hutter 2019), operations in PyTorch's order. Outputs: parameter and
// moments after the step, the same as before it if skipped; tally.
Result<Types> adamw_outputs(const Node&, Inputs inputs) {
  if (const auto fits = check_optimizer(inputs, 3); !fits) {
    return fits.error();
  }
  return Types{inputs[0], inputs[1], inputs[2], kTally};
}

// inputs: parameter, momentum, gradient, factor, rate, applied, skip. attributes `momentum`,
// `decay`, `math`. As torch.optim.SGD: decay goes into the gradient, the first step's momentum
// is the gradient.
Result<Types> sgd_outputs(const Node&, Inputs inputs) {
  if (const auto fits = check_optimizer(inputs, 2); !fits) {
    return fits.error();
  }
  return Types{inputs[0], inputs[1], kTally};
}

// inputs: average, parameter, skip. attribute `decay`.
Result<Types> ema_outputs(const Node&, Inputs inputs) {
  if (!(inputs[0].shape == inputs[1].shape)) {
    return differ("the average and its parameter", inputs[0], inputs[1]);
  }
  if (!all_floats(inputs.first(2))) {
    return not_floats(inputs.first(2));
  }
  if (!(inputs[2] == kFlag)) {
    return bad_input(fmt::format("a flag of {}, needs a bool", text(inputs[2])));
  }
  return Types{inputs[0]};
}

// inputs: scale, steps since it last changed, whether this one was skipped. attributes
// `growth`, `backoff`, `interval`, `floor`. As torch.amp.GradScaler.update(), but for the
// floor.
Result<Types> scale_outputs(const Node&, Inputs inputs) {
  if (!is_scalar(inputs[0])) {
    return not_scalar("a scale", inputs[0]);
  }
  const TensorType age{DType::i32, Shape()};
  if (!(inputs[1] == age) || !(inputs[2] == kFlag)) {
    return bad_input(fmt::format("an age and a flag of {} and {}, needs an i32 and a bool",
                                 text(inputs[1]), text(inputs[2])));
  }
  return Types{inputs[0], inputs[1]};
}

}  // namespace

const OpDef kCheckGradients{Op::check_gradients, "check_gradients", NumericClass::update, 1,
                            kAnyNumber,          check_outputs};
const OpDef kGradientFactor{Op::gradient_factor, "gradient_factor", NumericClass::update, 2, 2,
                            factor_outputs};
const OpDef kLearningRate{Op::learning_rate, "learning_rate", NumericClass::update, 1, 1,
                          rate_outputs};
const OpDef kAdamw{Op::adamw, "adamw", NumericClass::update, 8, 9, adamw_outputs,
                   nullptr,   nullptr, InPlace::matching};
const OpDef kSgd{Op::sgd, "sgd",   NumericClass::update, 7, 8, sgd_outputs,
                 nullptr, nullptr, InPlace::matching};
const OpDef kEma{Op::ema, "ema",   NumericClass::update, 3, 3, ema_outputs,
                 nullptr, nullptr, InPlace::matching};
// inputs: a counter, whether to leave it. Output: one more.
const OpDef kAdvance{Op::advance, "advance", NumericClass::update, 2, 2, advance_outputs,
                     nullptr,     nullptr,   InPlace::matching};
const OpDef kUpdateScale{
    Op::update_scale, "update_scale", NumericClass::update, 3, 3, scale_outputs,
    nullptr,          nullptr,        InPlace::matching};

}  // namespace halfwatt

#include "engine/ops/optimizer.h"
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

// Not finite, unchanged: how many elements of the parameter are so after the step.
const TensorType kTally{DType::i64, Shape{2}};

// One parameter, its moments and gradient: of one shape, and of the dtypes that `first` has.
Result<void> check_parameter(Inputs own, Inputs first) {
  for (std::size_t at = 0; at < own.size(); ++at) {
    if (!is_float(own[at].dtype) || !(own[at].shape == own[0].shape)) {
      return differ("the parameter and its gradient or moment", own[0], own[at]);
    }
    if (own[at].dtype != first[at].dtype) {
      return differ("parameters of one update", first[at], own[at]);
    }
  }
  return {};
}

Result<void> check_shared(Inputs shared) {
  for (const TensorType& each : shared.first(2)) {
    if (!is_scalar(each)) {
      return not_scalar("a factor or rate", each);
    }
  }
  return check_counter(shared.subspan(2, 2));
}

// Of both optimizers, each of which updates any number of parameters that differ in their shape
// alone. inputs: for every parameter itself, its moments and its gradient, then what all share:
// factor, rate, applied, skip and, to round one parameter stochastically, a random key.
// Outputs: for every parameter itself and its moments after the step, the same as before it if
// skipped, and its tally. So an output has the number of the input that it may overwrite.
template <Op kOp>
Result<Types> optimizer_outputs(const Node&, Inputs inputs) {
  const ParametersOfUpdate of = parameters_of(kOp, inputs.size());
  if (of.rest > (of.count == 1 ? 1 : 0)) {
    return bad_input(fmt::format("{} inputs, needs {} for each parameter and {}", inputs.size(),
                                 of.each, kSharedInputs));
  }
  Types outputs;
  for (std::size_t at = 0; at < of.count; ++at) {
    const Inputs own = inputs.subspan(at * of.each, of.each);
    if (const auto fits = check_parameter(own, inputs.first(of.each)); !fits) {
      return fits.error();
    }
    outputs.insert(outputs.end(), own.begin(), own.end() - 1);
    outputs.push_back(kTally);
  }
  if (const auto fits = check_shared(inputs.subspan(of.shared())); !fits) {
    return fits.error();
  }
  return outputs;
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
// Moments: the first and the second. attributes `beta1`, `beta2`, `eps`, `decay`, `math`: the
// dtype of the arithmetic. Decoupled decay (Loshchilov and Hutter 2019), operations in
// PyTorch's order.
const OpDef kAdamw{Op::adamw, "adamw",    NumericClass::update,
                   8,         kAnyNumber, optimizer_outputs<Op::adamw>,
                   nullptr,   nullptr,    InPlace::matching};
// Moment: the momentum. attributes `momentum`, `decay`, `math`. As torch.optim.SGD: decay goes
// into the gradient, the first step's momentum is the gradient.
const OpDef kSgd{Op::sgd, "sgd",      NumericClass::update,
                 7,       kAnyNumber, optimizer_outputs<Op::sgd>,
                 nullptr, nullptr,    InPlace::matching};
const OpDef kEma{Op::ema, "ema",   NumericClass::update, 3, 3, ema_outputs,
                 nullptr, nullptr, InPlace::matching};
// inputs: a counter, whether to leave it. Output: one more.
const OpDef kAdvance{Op::advance, "advance", NumericClass::update, 2, 2, advance_outputs,
                     nullptr,     nullptr,   InPlace::matching};
const OpDef kUpdateScale{
    Op::update_scale, "update_scale", NumericClass::update, 3, 3, scale_outputs,
    nullptr,          nullptr,        InPlace::matching};

}  // namespace halfwatt

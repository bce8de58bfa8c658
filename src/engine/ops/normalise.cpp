#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

// Bytes of pictures, u8 [N, C, H, W], as numbers. attributes `mean` and `deviation`, one of
// each channel, which are floats: what normalised() (tensor/normalisation.h) makes of them, in
// f32.
Result<Types> outputs(const Node& node, Inputs inputs) {
  const TensorType& images = inputs[0];
  if (images.dtype != DType::u8 || images.shape.rank() != 4) {
    return bad_input(fmt::format("pictures of {}, needs u8 NxCxHxW", text(images)));
  }
  const auto channels = static_cast<std::size_t>(images.shape[1]);
  const std::vector<double>& means = node.attributes.numbers("mean");
  const std::vector<double>& deviations = node.attributes.numbers("deviation");
  if (means.size() != channels || deviations.size() != channels) {
    return bad_input(fmt::format("{} means and {} deviations of {}, needs one of each channel",
                                 means.size(), deviations.size(), text(images)));
  }
  for (const double deviation : deviations) {
    if (!(deviation > 0)) {
      return bad_input(fmt::format("a deviation of {}, needs more than 0", deviation));
    }
  }
  return Types{{DType::f32, images.shape}};
}

}  // namespace

const OpDef kNormalise{Op::normalise, "normalise", NumericClass::pointwise, 1, 1, outputs};

}  // namespace halfwatt

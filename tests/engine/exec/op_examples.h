#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/builder.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// One input of an op, as an example gives it.
struct ExampleInput {
  enum class Kind {
    number,    ///< normally distributed, and the gradient of it is wanted
    given,     ///< normally distributed, and there is no gradient
    share,     ///< uniform in 0 to 1, no gradient
    log_sum,   ///< about the logarithm of a sum of exponentials, no gradient
    integers,  ///< as `values` says
    bytes,     ///< of pictures, u8 whatever the storage
  };
  Kind kind = Kind::number;
  Shape shape;
  std::vector<std::int64_t> values;
  bool is_wide = false;  ///< statistics: f32 whatever the storage
};

/// A call of an op that tests make in many formats.
struct OpExample {
  Op op;
  std::vector<ExampleInput> inputs;
  Attributes attributes;
  /// How many terms the longest sum has that the op takes, one after the other.
  double terms = 1;
  /// How often a number on the way to the last output is stored.
  double stored_between = 0;
};

/// An example at least of every op that computes something from numbers; a new op adds a row.
const std::vector<OpExample>& op_examples();

/// Values of an input in fp64; the same for the same seed.
std::vector<double> example_values(const ExampleInput& input, std::uint64_t seed);

/// The type of an input where numbers are stored in `dtype`.
TensorType example_type(const ExampleInput& input, DType dtype);

/// "matmul 3x5 5x7".
std::string text(const OpExample& example);

}  // namespace halfwatt

#include <gtest/gtest.h>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

TEST(InPlace, is_allowed_over_any_input_of_an_op_of_elements) {
  for (const Op op :
       {Op::add, Op::scale, Op::gelu, Op::gelu_gradient, Op::dropout, Op::drop_path}) {
    EXPECT_TRUE(may_overwrite(op, 0, 0)) << name_of(op);
    EXPECT_TRUE(may_overwrite(op, 0, 1)) << name_of(op);
    EXPECT_FALSE(may_overwrite(op, 1, 0)) << name_of(op);
  }
}

TEST(InPlace, is_allowed_to_an_update_over_the_input_of_the_same_number) {
  for (const Op op : {Op::adamw, Op::sgd, Op::ema, Op::advance, Op::update_scale,
                      Op::observe_amax, Op::rescale}) {
    for (int at = 0; at < 3; ++at) {
      EXPECT_TRUE(may_overwrite(op, at, at)) << name_of(op);
      EXPECT_FALSE(may_overwrite(op, at, at + 1)) << name_of(op);
      EXPECT_FALSE(may_overwrite(op, at + 1, at)) << name_of(op);
    }
  }
}

TEST(InPlace, is_forbidden_to_all_that_read_an_element_more_than_once_or_elsewhere) {
  for (const Op op : {Op::matmul, Op::attention, Op::layer_norm, Op::cross_entropy, Op::cast,
                      Op::mean, Op::sum_to, Op::expand, Op::slice, Op::concatenate,
                      Op::transfer, Op::check_gradients, Op::add_layer_norm, Op::write}) {
    for (int output = 0; output < 2; ++output) {
      for (int input = 0; input < 2; ++input) {
        EXPECT_FALSE(may_overwrite(op, output, input)) << name_of(op);
      }
    }
  }
}

}  // namespace
}  // namespace halfwatt

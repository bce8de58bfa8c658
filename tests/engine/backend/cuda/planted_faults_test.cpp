// Checks that never fail prove nothing: each of these faults is one that such code has had, and
// a check of this suite sees it.

#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "engine/backend/cuda/checks.h"
#include "engine/backend/cuda/planted.h"

namespace halfwatt {
namespace {

using cuda::Fault;

class PlantedFaults : public OnGpu {
 protected:
  void TearDown() override { cuda::plant(Fault::none); }
};

/// The last example of an op, which is its largest.
const OpExample& last_of(Op op) {
  const auto& all = op_examples();
  return *std::find_if(all.rbegin(), all.rend(),
                       [op](const OpExample& example) { return example.op == op; });
}

/// A fault, and the check that is to see it.
struct Row {
  Fault fault;
  std::string_view name;
  std::function<double()> check;
};

std::vector<Row> rows() {
  const auto op = [](const OpExample& example, DType storage) {
    return [example, storage] { return error_of_tolerance(example, storage); };
  };
  const OpExample attention = attentions(197, 3, 64).front();
  return {
      {Fault::mask_column, "mask column 197, on tensor cores", op(attention, DType::f16)},
      {Fault::mask_column, "mask column 197, in fp32", op(attention, DType::f32)},
      {Fault::tf32_in_fp32, "tf32 in fp32",
       [] {
         return std::max(error_of_tolerance(product_of_few_terms(), DType::f32),
                         error_of_tolerance(product_of_layer(), DType::f32));
       }},
      {Fault::lost_found_inf, "lost found-inf", error_of_found},
      {Fault::stale_copy, "stale weight copy", [] { return error_of_copies("amp-bf16"); }},
      {Fault::lost_part, "a part of a split sum", op(bias_gradient_of_layer(), DType::bf16)},
      {Fault::shared_scratch, "shared workspace",
       op(last_of(Op::convolution_weight_gradient), DType::bf16)},
      {Fault::lost_term, "the last term of a product",
       op(weight_gradient_of_layer(), DType::bf16)},
      {Fault::no_bias, "no bias", op(product_of_layer(), DType::bf16)},
      {Fault::no_smoothing, "no smoothing", op(last_of(Op::cross_entropy), DType::bf16)},
      {Fault::wrong_fp8_scale, "wrong scale of fp8",
       [] {
         return fp8_error_of_tolerance(fp8_product(false, true, DType::e4m3, DType::e4m3, 197));
       }},
  };
}

TEST_F(PlantedFaults, are_each_seen_by_a_check_that_passes_without_it) {
  for (const auto& [fault, name, check] : rows()) {
    const double without = check();
    cuda::plant(fault);
    const double with = check();
    cuda::plant(Fault::none);
    std::cout << name << ": error / tolerance " << with << ", without the fault " << without
              << '\n';
    EXPECT_LE(without, 1) << name;
    EXPECT_GT(with, 1) << name << " is not seen";
  }
}

}  // namespace
}  // namespace halfwatt

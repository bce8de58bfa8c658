#include "engine/passes/preflight.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

Optimizer adamw(double eps) {
  Optimizer optimizer;
  optimizer.eps = eps;
  return optimizer;
}

Preflight of(std::string_view mode, const Optimizer& optimizer) {
  return preflight(*precision_named(mode), optimizer);
}

bool says(const Preflight& found, std::string_view words) {
  for (const std::string& reason : found.reasons) {
    if (reason.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Preflight, has_nothing_against_modes_that_work) {
  for (const char* mode :
       {"fp32", "tf32", "amp-fp16", "amp-bf16", "fp8", "O0", "O1", "O2", "fp64"}) {
    const Preflight found = of(mode, adamw(1e-8));
    EXPECT_TRUE(found.reasons.empty()) << mode << ": " << found.reasons.front();
    EXPECT_FALSE(found.dies) << mode;
  }
}

TEST(Preflight, knows_that_half_cannot_hold_the_usual_eps) {
  const Preflight found = of("O3", adamw(1e-8));
  EXPECT_TRUE(found.dies);
  EXPECT_TRUE(says(found, "O3: eps 1e-08 is 0 in f16"));
  // sqrt(2^-25 / 1e-3): section 1.6 of the facts.
  EXPECT_TRUE(says(found, "gradients below 0.0055"));
  EXPECT_TRUE(says(found, "eps 1e-4, or a mode whose optimizer computes in fp32"));
}

TEST(Preflight, lets_half_live_with_an_eps_that_it_holds) {
  EXPECT_FALSE(of("O3", adamw(1e-4)).dies);
  EXPECT_FALSE(says(of("O3", adamw(1e-4)), "eps"));
  Optimizer sgd;
  sgd.kind = Optimizer::Kind::sgd;
  EXPECT_FALSE(of("O3", sgd).dies);
}

TEST(Preflight, says_that_a_backward_in_half_needs_a_scale) {
  EXPECT_TRUE(says(of("O3", adamw(1e-4)), "without loss scaling loses gradients below 3e-08"));
  EXPECT_FALSE(says(of("fp16", adamw(1e-8)), "without loss scaling"));
  EXPECT_FALSE(says(of("bf16", adamw(1e-8)), "without loss scaling"));
}

TEST(Preflight, says_where_decay_is_lost_in_the_rounding_of_parameters) {
  Optimizer optimizer = adamw(1e-8);
  optimizer.rate = 1e-3;
  optimizer.decay = 0.05;
  for (const char* mode : {"bf16", "fp16"}) {
    const Preflight found = of(mode, optimizer);
    EXPECT_FALSE(found.dies);
    EXPECT_TRUE(says(found, "rate times decay is 5e-05, less than a parameter in")) << mode;
    EXPECT_TRUE(says(found, "fp32 parameters work (amp-bf16, amp-fp16)")) << mode;
  }
  optimizer.decay = 0;
  EXPECT_TRUE(of("bf16", optimizer).reasons.empty());
  optimizer.decay = 0.05;
  optimizer.rate = 0.1;  // 5e-3 is more than 2^-9
  EXPECT_TRUE(of("bf16", optimizer).reasons.empty());
}

TEST(Preflight, has_nothing_against_decay_where_rounding_is_stochastic) {
  for (const char* mode : {"bf16-sr", "fp16-sr"}) {
    EXPECT_TRUE(preflight(*precision_named(mode), adamw(1e-8)).reasons.empty()) << mode;
  }
}

}  // namespace
}  // namespace halfwatt

// Weights are cast once: copies are their parameters, rounded, whenever a plan reads them.

#include <gtest/gtest.h>

#include "engine/exec/micro_training.h"

namespace halfwatt {
namespace {

void expect_copies_are_rounded_masters(BackendRun& run, std::string_view when) {
  const auto copies = copies_of(run.states());
  EXPECT_FALSE(copies.empty()) << when;
  for (const auto& [name, is_rounded] : copies) {
    EXPECT_TRUE(is_rounded) << when << " " << name;
  }
}

TEST(Copies, are_their_parameters_rounded_after_loading_and_after_every_step) {
  for (const char* mode : {"amp-fp16", "amp-bf16", "fp8", "fp8-delayed", "O1", "O2"}) {
    for (const int parts : {1, 2}) {
      MicroTraining training;
      training.mode = mode;
      training.micro_batches = parts;
      training.optimizer.rate = 0.01;
      MicroRun micro(training);
      expect_copies_are_rounded_masters(micro.run(), "after loading");
      const Tensor before = micro.run().states().save("head.weight");
      if (micro.run().states().has(std::string(kLossScale))) {
        micro.set_scale(256);
      }
      for (int step = 1; step <= 3; ++step) {
        micro.step(step);
        expect_copies_are_rounded_masters(micro.run(), mode);
      }
      EXPECT_FALSE(same_bits(before, micro.run().states().save("head.weight"))) << mode;
    }
  }
}

TEST(Copies, follow_a_parameter_that_is_loaded_between_steps) {
  MicroTraining training;
  training.mode = "amp-bf16";
  MicroRun micro(training);
  micro.step(1);
  const TensorType type = micro.run().states().spec("head.weight").type;
  micro.run().load("head.weight", tensor_of(type, {0.3}));
  expect_copies_are_rounded_masters(micro.run(), "after loading again");
  micro.step(2);
}

TEST(CopiesDeathTest, a_session_does_not_run_on_copies_older_than_their_parameters) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  MicroTraining training;
  training.mode = "amp-bf16";
  training.threads = 1;
  MicroRun micro(training);
  micro.run().states().written("head.weight");
  EXPECT_DEATH(micro.step(1), "a copy of a parameter that is older than the parameter");
}

}  // namespace
}  // namespace halfwatt

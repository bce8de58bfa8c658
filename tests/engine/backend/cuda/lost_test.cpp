// A device that is lost in the midst of a training, for real: a kernel traps. The rest of its
// process is of no use then, so that each test is a process of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/backend/cuda/gpu.h"
#include "engine/backend/cuda/trap.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

class Lost : public OnGpu {};

// Saves, loses the device, and says what the next step says.
[[noreturn]] void lose_the_device(const std::string& checkpoint) {
  const auto gpu = opened_gpu();
  const auto trainer = std::move(*Trainer::open(small_recipe("amp-fp16"), *gpu));
  const ImageSet images = digits();
  bool fine = true;
  for (int step = 0; step < 3; ++step) {
    fine = fine && trainer->step(some(images, 16 * step, 16));
  }
  fine = fine && trainer->save(checkpoint, {0, 48, {}});
  spring_trap();
  const auto report = trainer->step(some(images, 48, 16));
  const auto saved = trainer->save(checkpoint, {0, 64, {}});
  const bool is_told = fine && !report && report.error().kind == ErrorKind::device && !saved;
  std::fputs(report ? "a report" : report.error().message.c_str(), stderr);
  std::_Exit(is_told ? 3 : 1);
}

TEST_F(Lost, is_said_in_one_line_and_leaves_the_last_checkpoint_as_it_was) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // The process of its own comes here too, and is to find the same path.
  const std::string checkpoint = testing::TempDir() + "halfwatt-lost-checkpoint";
  std::filesystem::remove(checkpoint);
  EXPECT_EXIT(lose_the_device(checkpoint), testing::ExitedWithCode(3), "a kernel failed");
  const auto gpu = opened_gpu();
  const auto trainer = std::move(*Trainer::open(small_recipe("amp-fp16"), *gpu));
  const auto restored = trainer->restore(checkpoint);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->position.image, 48);
  EXPECT_TRUE(trainer->step(some(digits(), 48, 16)));
}

}  // namespace
}  // namespace halfwatt

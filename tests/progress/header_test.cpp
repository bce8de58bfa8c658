// The header for jobs compiles as C++ under the warnings of this project, and in more than one
// file of a program.

#include <gtest/gtest.h>
#include <halfwatt_progress.h>

namespace halfwatt {
namespace {

TEST(ProgressHeader, does_nothing_outside_of_halfwatt) {
  ::unsetenv("HALFWATT_PROGRESS");
  halfwatt_step(1);
  halfwatt_step_items(1, 32);
  halfwatt_loss(0.5);
  EXPECT_EQ(halfwatt_page_of_process_, nullptr);
}

}  // namespace
}  // namespace halfwatt

#include <gtest/gtest.h>

#include "guard/guardian.h"

// The tests' program is its own guardian, as halfwatt is.
int main(int argc, char** argv) {
  if (halfwatt::is_guardian(argc, argv)) {
    return halfwatt::guardian_main(argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#include <gtest/gtest.h>

#include "guard/death.h"
#include "guard/guardian.h"

// The tests' program is its own guardian, as halfwatt is.
int main(int argc, char** argv) {
  if (halfwatt::is_guardian(argc, argv)) {
    return halfwatt::guardian_main(argc, argv, halfwatt::death_hook());
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

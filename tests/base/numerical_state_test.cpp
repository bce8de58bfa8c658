#include "base/numerical_state.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(NumericalState, reads_back_the_words_it_writes) {
  for (const auto state : {NumericalState::unknown, NumericalState::live,
                           NumericalState::stalled, NumericalState::dead}) {
    EXPECT_EQ(numerical_state(text(state)), state);
  }
  EXPECT_EQ(numerical_state("undead"), std::nullopt);
  EXPECT_EQ(numerical_state(""), std::nullopt);
}

}  // namespace
}  // namespace halfwatt

#include "device/energy_method.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(EnergyMethod, reads_back_the_word_it_writes) {
  for (const auto method : {EnergyMethod::counter, EnergyMethod::power_integral,
                            EnergyMethod::average_power, EnergyMethod::none}) {
    EXPECT_EQ(energy_method(text(method)), method) << text(method);
  }
}

TEST(EnergyMethod, knows_no_other_words) {
  for (const char* word : {"", "Counter", "counter ", "guess"}) {
    EXPECT_EQ(energy_method(word), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace halfwatt

#include "device/unmetered_cpu.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(UnmeteredCpu, knows_no_energy_and_no_signal_rather_than_zero) {
  UnmeteredCpu cpu;
  EXPECT_EQ(cpu.info().id.text(), "cpu");
  EXPECT_FALSE(cpu.info().name.empty());
  EXPECT_EQ(cpu.info().energy_tick, std::nullopt);
  EXPECT_EQ(cpu.info().energy_method, EnergyMethod::none);
  EXPECT_EQ(cpu.energy(), std::nullopt);
  const Result<Sample> sample = cpu.read();
  ASSERT_TRUE(sample);
  for (const Signal& signal : kSignals) {
    EXPECT_EQ((*sample)[signal.id], std::nullopt);
  }
}

}  // namespace
}  // namespace halfwatt

#include "device/signal.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace halfwatt {
namespace {

TEST(Signal, stands_in_the_table_where_its_enumerator_says) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kSignals[i].id), i) << kSignals[i].name;
  }
}

TEST(Signal, has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const Signal& signal : kSignals) {
    EXPECT_FALSE(signal.name.empty());
    EXPECT_TRUE(names.insert(signal.name).second) << signal.name;
  }
}

TEST(Signal, is_a_counter_where_it_adds_up) {
  for (const Signal& signal : kSignals) {
    const bool adds_up = signal.unit == "s" || signal.unit == "J" || signal.unit == "errors" ||
                         signal.name.starts_with("pcie_sent") ||
                         signal.name.starts_with("pcie_received");
    EXPECT_EQ(signal.kind == SignalKind::counter, adds_up) << signal.name;
  }
}

TEST(Sample, knows_nothing_until_it_is_told) {
  const Sample sample;
  for (const Signal& signal : kSignals) {
    EXPECT_EQ(sample[signal.id], std::nullopt) << signal.name;
  }
}

TEST(Sample, keeps_every_signal_apart) {
  Sample sample;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sample[kSignals[i].id] = static_cast<double>(i);
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    EXPECT_EQ(sample[kSignals[i].id], static_cast<double>(i)) << kSignals[i].name;
  }
}

}  // namespace
}  // namespace halfwatt

#include "base/units.h"

#include <gtest/gtest.h>

#include <concepts>

namespace halfwatt {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

static_assert(Addable<Watts, Watts>);
static_assert(!Addable<Watts, Joules>);
static_assert(!Addable<Watts, double>);
static_assert(!std::convertible_to<double, Watts>);
static_assert(std::same_as<decltype(Watts(1) * Seconds(1)), Joules>);
static_assert(std::same_as<decltype(Joules(1) / Seconds(1)), Watts>);
static_assert(std::same_as<decltype(Watts(1) / Watts(1)), double>);

TEST(Units, power_times_time_is_energy_and_back) {
  EXPECT_EQ(Watts(300) * Seconds(2), Joules(600));
  EXPECT_EQ(Joules(600) / Seconds(2), Watts(300));
}

TEST(Units, add_scale_and_compare_within_a_unit) {
  Seconds time(1);
  time += Seconds(2);
  EXPECT_EQ(time, Seconds(3));
  EXPECT_EQ(time - Seconds(1), Seconds(2));
  EXPECT_EQ(time * 2, Seconds(6));
  EXPECT_EQ(time / 2, Seconds(1.5));
  EXPECT_LT(Watts(299), Watts(300));
  EXPECT_DOUBLE_EQ(Watts(150) / Watts(300), 0.5);
}

}  // namespace
}  // namespace halfwatt

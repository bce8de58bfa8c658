#include "tune/search.h"

#include <gtest/gtest.h>

#include "tune/scripted_series.h"

namespace halfwatt {
namespace {

// What a search asks for, in order, when every window succeeds.
std::vector<double> order_of(const Search& search, std::size_t at_most = 100) {
  std::vector<Measurement> measured;
  std::vector<double> order;
  while (order.size() < at_most) {
    const auto next = search.next(measured);
    if (!next) {
      break;
    }
    order.push_back(*next->number("power_limit"));
    measured.push_back(scripted_series({{order.back(), 10}}).measurements[0]);
  }
  return order;
}

TEST(LimitSpace, holds_both_ends_even_where_the_step_does_not_fit) {
  const LimitSpace space{power_limit_knob(), 100, 150, 20};
  EXPECT_EQ(space.values(), (std::vector<double>{150, 130, 110, 100}));
}

TEST(ListSearch, measures_every_value_as_often_as_asked) {
  const ListSearch search(power_limit_knob(), {400, 300, 200}, 2, false);
  EXPECT_EQ(order_of(search), (std::vector<double>{400, 300, 200, 400, 300, 200}));
}

TEST(ListSearch, interleaves_so_that_neighbours_in_time_are_far_apart) {
  const ListSearch search(power_limit_knob(), {480, 470, 460, 450, 440, 430, 420, 410}, 1,
                          true);
  EXPECT_EQ(order_of(search), (std::vector<double>{480, 440, 460, 420, 470, 430, 450, 410}));
}

TEST(ListSearch, goes_on_where_an_earlier_session_stopped) {
  const ListSearch search(power_limit_knob(), {400, 300, 200}, 1, false);
  const auto measured = scripted_series({{400, 10}, {300, 10}}).measurements;
  EXPECT_EQ(search.next(measured)->number("power_limit"), 200);
}

TEST(RepeatedSearch, asks_for_the_same_until_so_many_windows_are_settled) {
  const RepeatedSearch search(2);
  std::vector<Measurement> measured(1);
  EXPECT_EQ(search.next(measured), Setting{});
  measured[0].notes = {WindowNote::unsteady};
  measured.emplace_back();
  EXPECT_EQ(search.next(measured), Setting{});
  measured.emplace_back();
  EXPECT_EQ(search.next(measured), std::nullopt);
}

TEST(ReferencedSearch, measures_the_reference_first_every_fifth_window_and_last) {
  const ReferencedSearch search(
      power_limit_knob(), 480,
      std::make_unique<ListSearch>(
          power_limit_knob(), std::vector<double>{470, 460, 450, 440, 430, 420}, 1, false));
  const std::vector<double> expected = {480, 470, 460, 450, 440, 480, 430, 420, 480};
  EXPECT_EQ(order_of(search), expected);
  EXPECT_EQ(search.expected_windows(), 9);
}

}  // namespace
}  // namespace halfwatt

#include "tune/grid_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tune/limit_search.h"

namespace halfwatt {
namespace {

const GridAxis kBatch{{"batch", "", {}}, {32., 64., 128.}};
const GridAxis kPrecision{{"precision", "", {}}, {"fp16", "fp32"}};

std::string batch_of(const Setting& setting) {
  return number_text(setting.number("batch").value_or(0));
}

/// The limits of each combination, interleaved with the highest as reference.
std::unique_ptr<Search> limits(std::vector<double> values, int repeats = 1) {
  const double top = *std::max_element(values.begin(), values.end());
  return std::make_unique<ReferencedSearch>(
      power_limit_knob(), top,
      std::make_unique<ListSearch>(power_limit_knob(), std::move(values), repeats, true));
}

/// All settings of a search until it is content; those with `too_large` do not fit.
std::vector<Setting> walk(const Search& search, std::optional<double> too_large = {}) {
  std::vector<Measurement> measured;
  std::vector<Setting> settings;
  while (const auto setting = search.next(measured)) {
    Measurement& window = measured.emplace_back();
    window.setting = *setting;
    window.work.step_time = Seconds(1);
    window.work.steps = 20;
    if (too_large && setting->number("batch") == too_large) {
      window.notes.push_back(WindowNote::does_not_fit);
    }
    settings.push_back(*setting);
    if (settings.size() > 1000) {
      ADD_FAILURE() << "the search never ends";
      break;
    }
  }
  return settings;
}

int restarts(const std::vector<Setting>& settings) {
  int count = 0;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const bool same = i > 0 && batch_of(settings[i]) == batch_of(settings[i - 1]);
    count += same ? 0 : 1;
  }
  return count;
}

TEST(GridSearch, measures_every_combination_with_every_limit) {
  const auto settings = walk(GridSearch({kBatch, kPrecision}, limits({200, 250, 300}, 1)));
  for (const double batch : {32., 64., 128.}) {
    for (const char* precision : {"fp16", "fp32"}) {
      for (const double limit : {200., 250., 300.}) {
        Setting wanted;
        wanted.set("batch", batch);
        wanted.set("precision", std::string(precision));
        wanted.set("power_limit", limit);
        EXPECT_NE(std::find(settings.begin(), settings.end(), wanted), settings.end())
            << text(wanted);
      }
    }
  }
}

TEST(GridSearch, measures_no_combination_that_is_left_out) {
  GridSearch search({kBatch, kPrecision}, limits({200, 250, 300}, 1));
  Setting refused;
  refused.set("batch", 64.0);
  refused.set("precision", std::string("fp16"));
  const auto before = walk(search).size();
  search.leave_out(refused);
  EXPECT_EQ(search.combinations(), 5U);
  const auto settings = walk(search);
  EXPECT_EQ(settings.size(), before / 6 * 5);
  refused.set("power_limit", 200.0);
  EXPECT_EQ(std::find(settings.begin(), settings.end(), refused), settings.end());
}

TEST(GridSearch, starts_the_workload_once_for_each_combination) {
  const GridSearch search({kBatch}, limits({150, 200, 250, 300, 350}, 3));
  EXPECT_EQ(restarts(walk(search)), 3);
  EXPECT_EQ(search.combinations(), 3U);
}

TEST(GridSearch, begins_and_ends_each_combination_with_the_highest_limit) {
  const auto settings = walk(GridSearch({kBatch}, limits({150, 200, 250}, 1)));
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const bool first = i == 0 || batch_of(settings[i]) != batch_of(settings[i - 1]);
    const bool last =
        i + 1 == settings.size() || batch_of(settings[i]) != batch_of(settings[i + 1]);
    if (first || last) {
      EXPECT_EQ(settings[i].number("power_limit"), 250) << i;
    }
  }
}

TEST(GridSearch, leaves_a_combination_that_does_not_fit) {
  const auto settings = walk(GridSearch({kBatch}, limits({150, 200, 250}, 1)), 64);
  EXPECT_EQ(std::count_if(settings.begin(), settings.end(),
                          [](const Setting& each) { return each.number("batch") == 64; }),
            1);
  EXPECT_EQ(settings.back().number("batch"), 128);
}

TEST(GridSearch, leaves_a_combination_whose_network_is_dead) {
  const GridSearch search({kPrecision}, limits({150, 200}));
  Measurement dead;
  dead.setting.set("precision", std::string("fp16"));
  dead.setting.set("power_limit", 200.);
  dead.numerical_state = NumericalState::dead;
  const auto next = search.next(std::vector{dead});
  ASSERT_TRUE(next);
  EXPECT_EQ(text(*next), "precision=fp32 power_limit=200");
}

TEST(GridSearch, searches_each_combination_for_itself) {
  const GridSearch search({kBatch}, std::make_unique<LimitSearch>(
                                        LimitSpace{}, 300, std::vector{90.}, SearchBudget{}));
  EXPECT_EQ(search.next({})->number("power_limit"), 300);
  Measurement of_another;
  of_another.setting.set("power_limit", 300.);
  of_another.setting.set("batch", 64.);
  of_another.work.step_time = Seconds(1);
  // What is known of batch 64 is no news of batch 32, which is still to begin.
  const auto first = search.next(std::vector{of_another});
  EXPECT_EQ(first->number("batch"), 32);
  EXPECT_EQ(first->number("power_limit"), 300);
}

TEST(GridSearch, knows_how_many_windows_it_needs) {
  for (const int repeats : {1, 2, 3}) {
    const GridSearch search({kBatch, kPrecision}, limits({150, 200, 250, 300}, repeats));
    const auto windows = static_cast<int>(walk(search).size());
    EXPECT_LE(windows, search.expected_windows());
    EXPECT_GE(windows * 4, search.expected_windows() * 3);
  }
}

TEST(GridSearch, measures_limits_alone_without_any_knob) {
  const auto settings = walk(GridSearch({}, limits({150, 200}, 1)));
  EXPECT_EQ(settings.front(), LimitSpace{}.setting(200));
}

}  // namespace
}  // namespace halfwatt

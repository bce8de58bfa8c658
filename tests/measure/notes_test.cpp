#include "measure/notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace halfwatt {
namespace {

std::vector<WindowNote> all_notes() {
  std::vector<WindowNote> notes;
  for (int i = 0; i <= static_cast<int>(WindowNote::shared_card); ++i) {
    notes.push_back(static_cast<WindowNote>(i));
  }
  return notes;
}

TEST(WindowNote, has_a_word_of_its_own_that_reads_back) {
  std::set<std::string_view> words;
  for (const WindowNote each : all_notes()) {
    const std::string_view found = word(each);
    EXPECT_TRUE(words.insert(found).second) << found;
    EXPECT_EQ(note(found), each) << found;
    EXPECT_TRUE(std::ranges::all_of(found, [](char c) {
      return (c >= 'a' && c <= 'z') || c == '-';
    })) << found;
  }
}

TEST(WindowNote, says_in_a_sentence_what_it_means) {
  std::set<std::string_view> sentences;
  for (const WindowNote each : all_notes()) {
    EXPECT_NE(sentence(each).find(' '), std::string_view::npos) << word(each);
    EXPECT_TRUE(sentences.insert(sentence(each)).second) << word(each);
  }
}

TEST(WindowNote, is_unknown_by_any_other_word) {
  for (const char* other : {"", "clamp", "Clamped", "clamped ", "limit_reverted"}) {
    EXPECT_EQ(note(other), std::nullopt) << other;
  }
}

TEST(WindowNote, voids_a_window_unless_the_figures_still_hold) {
  std::vector<WindowNote> harmless;
  std::ranges::copy_if(all_notes(), std::back_inserter(harmless),
                       [](WindowNote each) { return !invalidates(each); });
  EXPECT_EQ(harmless, (std::vector{WindowNote::clamped, WindowNote::never_settled,
                                   WindowNote::cap_not_binding, WindowNote::shared_card}));
}

}  // namespace
}  // namespace halfwatt

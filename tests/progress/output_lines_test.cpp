#include "progress/output_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace halfwatt {
namespace {

/// The whole lines in `text`, given `piece` bytes at a time, and the rest.
std::vector<std::string> lines_of(std::string_view text, std::size_t piece = 1) {
  OutputLines lines;
  std::vector<std::string> whole;
  const auto sink = [&whole](std::string_view line, bool is_whole) {
    EXPECT_LE(line.size(), OutputLines::kMostBytes);
    if (is_whole) {
      whole.emplace_back(line);
    }
    return false;
  };
  for (std::size_t at = 0; at < text.size(); at += piece) {
    lines.take(text.substr(at, piece), sink);
  }
  lines.end(sink);
  return whole;
}

using Lines = std::vector<std::string>;

TEST(OutputLines, end_at_newline_carriage_return_and_backspace) {
  EXPECT_EQ(lines_of("one\ntwo\r\nthree\rfour\b\b\bfive"),
            (Lines{"one", "two", "three", "four", "five"}));
}

TEST(OutputLines, have_no_colours_and_titles) {
  EXPECT_EQ(lines_of("\x1b[32mstep\x1b[0m \x1b[38;2;0;255;0m5\x1b[m"), (Lines{"step 5"}));
  EXPECT_EQ(lines_of("\x1b]0;a title\x07step \x1b]8;;link\x1b\\5"), (Lines{"step 5"}));
  EXPECT_EQ(lines_of("a\x1b"
                     "cb"),
            (Lines{"ab"}));
}

TEST(OutputLines, end_where_the_cursor_moves) {
  EXPECT_EQ(lines_of("outer 1\x1b[Ainner 2\x1b[2Kinner 3"),
            (Lines{"outer 1", "inner 2", "inner 3"}));
}

TEST(OutputLines, show_a_line_that_is_not_whole_until_the_reader_has_enough) {
  OutputLines lines;
  std::vector<std::string> parts;
  const auto sink = [&parts](std::string_view line, bool is_whole) {
    parts.push_back(std::string(line) + (is_whole ? "|" : ""));
    return line.find("5") != std::string_view::npos;
  };
  for (const char* piece : {"st", "ep 5", " of", " 9\n", "st"}) {
    lines.take(piece, sink);
  }
  EXPECT_EQ(parts, (Lines{"st", "step 5", "step 5 of 9|", "st"}));
}

TEST(OutputLines, need_little_memory_whatever_is_printed) {
  OutputLines lines;
  std::size_t longest = 0;
  const auto sink = [&longest](std::string_view line, bool) {
    longest = std::max(longest, line.size());
    return true;
  };
  const std::string mebibyte(1 << 20, 'x');
  for (int i = 0; i < 50; ++i) {
    lines.take(mebibyte, sink);
  }
  lines.take("\nnext", sink);
  EXPECT_EQ(longest, OutputLines::kMostBytes);
}

TEST(OutputLines, come_back_from_a_sequence_that_never_ends) {
  EXPECT_EQ(lines_of("\x1b]" + std::string(1000, 'x') + "\nstep 5").back(), "step 5");
  EXPECT_EQ(lines_of("\x1b[" + std::string(1000, ';') + "\nstep 5").back(), "step 5");
}

TEST(OutputLines, are_the_same_however_the_bytes_are_cut) {
  Rng rng(5);
  constexpr std::string_view kBytes = "ab1 \n\r\b\t\x1b\x1b[[];;mAKc\x07\\\xff\x01";
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 200; ++k) {
      text += kBytes[rng.next() % kBytes.size()];
    }
    const Lines whole = lines_of(text, text.size());
    for (const std::size_t piece : {1, 2, 3, 7}) {
      ASSERT_EQ(lines_of(text, piece), whole);
    }
  }
}

}  // namespace
}  // namespace halfwatt

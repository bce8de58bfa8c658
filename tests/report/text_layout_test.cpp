#include "report/text_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halfwatt {
namespace {

using Lines = std::vector<std::string>;

TEST(TextLayout, counts_columns_and_not_bytes) {
  EXPECT_EQ(display_width("300 W"), 5);
  EXPECT_EQ(display_width("µJ"), 2);
  EXPECT_EQ(display_width("e\u0301"), 1);     // with a combining accent
  EXPECT_EQ(display_width("\u7535"), 2);      // East Asian wide
  EXPECT_EQ(display_width("\U0001F680"), 2);  // emoji
  EXPECT_EQ(display_width(""), 0);
}

TEST(TextLayout, replaces_what_could_steer_a_terminal) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\uFFFD[2Jb");
  EXPECT_EQ(printable("\u202E"
                      "drow"),
            "\uFFFD"
            "drow");  // right-to-left override
  EXPECT_EQ(printable("a\tb\nc"), "a b c");
  EXPECT_EQ(printable("\u009b"
                      "31m"),
            "\uFFFD"
            "31m");  // CSI as one character
}

TEST(TextLayout, replaces_invalid_utf8_and_goes_on_reading) {
  EXPECT_EQ(printable("a\xFF"
                      "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(printable("a\xC3"), "a\uFFFD");
  EXPECT_EQ(printable("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(printable("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80").size(), 12U);        // beyond Unicode
}

TEST(TextLayout, shortens_with_an_ellipsis_within_the_width) {
  EXPECT_EQ(shortened("inference", 9), "inference");
  EXPECT_EQ(shortened("inference", 5), "infe\u2026");
  EXPECT_EQ(shortened("train fp32", 7), "train\u2026");  // no space before the ellipsis
  EXPECT_EQ(display_width(shortened("\u7535\u7535\u7535", 4)), 3);
  EXPECT_EQ(shortened("NVIDIA A40 cifar100 shufflenetv2 1024 adadelta", 24),
            "NVIDIA A40 cifa\u2026adadelta");  // the end tells long names apart
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(TextLayout, wraps_at_spaces_and_cuts_what_is_too_long) {
  EXPECT_EQ(wrapped("a lower limit keeps more", 10), (Lines{"a lower", "limit", "keeps more"}));
  EXPECT_EQ(wrapped("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrapped("one\ntwo", 80), (Lines{"one", "two"}));
  EXPECT_EQ(wrapped("", 80), (Lines{""}));
  EXPECT_EQ(wrapped("\u7535\u7535", 1), (Lines{"\u7535", "\u7535"}));  // wider than a line
}

TEST(TextLayout, pads_on_either_side) {
  EXPECT_EQ(padded("µJ", 4, true), "  µJ");
  EXPECT_EQ(padded("µJ", 4, false), "µJ  ");
  EXPECT_EQ(padded("long", 2, true), "long");
}

}  // namespace
}  // namespace halfwatt

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfwatt {

/// `text` on one line and harmless to a terminal: white space becomes a space; control
/// characters, text-direction overrides and invalid UTF-8 become U+FFFD.
std::string printable(std::string_view text);

/// Columns that printable UTF-8 text takes in a terminal: 2 for East Asian wide characters and
/// emoji, 0 for combining marks.
int display_width(std::string_view text);

/// `text` cut to `width` columns, an ellipsis where something is left out: before its last
/// third, or at the end of a narrow one.
std::string shortened(std::string_view text, int width);

/// `text` filled with spaces to `width` columns, on the left where `right_aligned`.
std::string padded(std::string_view text, int width, bool right_aligned);

/// `text` broken at spaces into lines of at most `width` columns; a newline in it starts a new
/// line, and a word longer than a line is cut. At least one line.
std::vector<std::string> wrapped(std::string_view text, int width);

/// Columns of the longest word: what `wrapped` needs to cut none.
int longest_word(std::string_view text);

}  // namespace halfwatt

#include "report/text_layout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace halfwatt {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

struct Glyph {
  char32_t code = kReplacement;
  std::size_t bytes = 1;  ///< 1 where the byte is no valid start, so that reading goes on
  bool valid = false;
};

/// The first character of `text`, which is not empty.
Glyph first_glyph(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) {
    return {};
  }
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return {};
    }
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || code > 0x10FFFF || surrogate) {
    return {};
  }
  return {code, bytes, true};
}

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](Range range) { return code >= range.first && code <= range.last; });
}

// The blocks of Unicode 15 that matter here. wcwidth() is no help: it knows ASCII only in the
// C locale, and halfwatt's output must not depend on the locale.
constexpr std::array<Range, 7> kZeroWidth = {{{0x0300, 0x036F},
                                              {0x0483, 0x0489},
                                              {0x1AB0, 0x1AFF},
                                              {0x1DC0, 0x1DFF},
                                              {0x200B, 0x200F},
                                              {0x20D0, 0x20FF},
                                              {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 11> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1F64F},
                                          {0x1F680, 0x1F9FF},
                                          {0x20000, 0x3FFFD}}};
// Controls, and the overrides that let a label show something else than it says.
constexpr std::array<Range, 4> kUnprintable = {
    {{0x0000, 0x001F}, {0x007F, 0x009F}, {0x202A, 0x202E}, {0x2066, 0x2069}}};

int width_of(char32_t code) {
  if (contains(kZeroWidth, code)) {
    return 0;
  }
  return contains(kWide, code) ? 2 : 1;
}

/// Bytes of the longest beginning of `text` that fits `width` columns.
std::size_t bytes_that_fit(std::string_view text, int width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Glyph glyph = first_glyph(text.substr(bytes));
    width -= width_of(glyph.code);
    if (width < 0) {
      break;
    }
    bytes += glyph.bytes;
  }
  return bytes;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

constexpr int kWorthATail = 16;  // columns

/// Appends `word` to the last of `lines`, or to new ones where it does not fit.
void place(std::string_view word, int width, std::vector<std::string>& lines) {
  const int used = display_width(lines.back());
  if (used > 0 && used + 1 + display_width(word) <= width) {
    lines.back().append(" ").append(word);
    return;
  }
  if (used > 0) {
    lines.emplace_back();
  }
  while (display_width(word) > width) {
    const std::size_t fits = bytes_that_fit(word, width);
    const std::size_t bytes = std::max(fits, first_glyph(word).bytes);
    lines.back() = word.substr(0, bytes);
    word.remove_prefix(bytes);
    if (word.empty()) {  // one character was wider than the line
      return;
    }
    lines.emplace_back();
  }
  lines.back() = word;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    if (glyph.code == '\n' || glyph.code == '\t' || glyph.code == '\r') {
      out += ' ';
    } else if (!glyph.valid || contains(kUnprintable, glyph.code)) {
      out += kReplacementUtf8;
    } else {
      out += text.substr(0, glyph.bytes);
    }
    text.remove_prefix(glyph.bytes);
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    width += width_of(glyph.code);
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string shortened(std::string_view text, int width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  if (width < 1) {
    return {};
  }
  // The end of a long name often tells it from its neighbours ("... 1024 adam"): keep some of
  // it.
  std::string_view tail;
  if (width >= kWorthATail) {
    tail = text;
    while (display_width(tail) > width / 3) {
      tail.remove_prefix(first_glyph(tail).bytes);
    }
  }
  std::string_view kept = text.substr(0, bytes_that_fit(text, width - 1 - display_width(tail)));
  while (!kept.empty() && kept.back() == ' ') {
    kept.remove_suffix(1);
  }
  while (!tail.empty() && tail.front() == ' ') {
    tail.remove_prefix(1);
  }
  return std::string(kept).append(kEllipsis).append(tail);
}

std::string padded(std::string_view text, int width, bool right_aligned) {
  const auto missing = static_cast<std::size_t>(std::max(0, width - display_width(text)));
  const std::string space(missing, ' ');
  return right_aligned ? space + std::string(text) : std::string(text) + space;
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines;
  for (const std::string_view paragraph : split(text, '\n')) {
    std::vector<std::string> part(1);
    const std::string clean = printable(paragraph);
    for (const std::string_view word : split(clean, ' ')) {
      if (!word.empty()) {
        place(word, std::max(1, width), part);
      }
    }
    std::move(part.begin(), part.end(), std::back_inserter(lines));
  }
  return lines;
}

int longest_word(std::string_view text) {
  int longest = 0;
  for (const std::string_view word : split(text, ' ')) {
    longest = std::max(longest, display_width(word));
  }
  return longest;
}

}  // namespace halfwatt

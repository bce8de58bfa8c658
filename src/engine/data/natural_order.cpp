#include "engine/data/natural_order.h"

#include <algorithm>
#include <compare>

namespace halfwatt {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

unsigned char lowered(char letter) {
  const bool capital = letter >= 'A' && letter <= 'Z';
  return static_cast<unsigned char>(capital ? letter - 'A' + 'a' : letter);
}

// Takes the digits, or the letters up to the next digit, from the front.
std::string_view take(std::string_view& rest, bool digits) {
  const auto end =
      std::ranges::find_if(rest, [digits](char letter) { return is_digit(letter) != digits; });
  const auto length = static_cast<std::size_t>(end - rest.begin());
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(length);
  return taken;
}

// Of any length, so never as an integer.
std::strong_ordering by_value(std::string_view one, std::string_view other) {
  one.remove_prefix(std::min(one.find_first_not_of('0'), one.size()));
  other.remove_prefix(std::min(other.find_first_not_of('0'), other.size()));
  const auto by_length = one.size() <=> other.size();
  return by_length != 0 ? by_length : one <=> other;
}

std::strong_ordering by_letters(std::string_view one, std::string_view other) {
  return std::lexicographical_compare_three_way(
      one.begin(), one.end(), other.begin(), other.end(),
      [](char a, char b) { return lowered(a) <=> lowered(b); });
}

}  // namespace

bool natural_less(std::string_view one, std::string_view other) {
  std::string_view left = one;
  std::string_view right = other;
  // Letters first, none if a name begins with a digit: timm's lists of parts.
  for (bool digits = false; !left.empty() && !right.empty(); digits = !digits) {
    const std::string_view a = take(left, digits);
    const std::string_view b = take(right, digits);
    const auto order = digits ? by_value(a, b) : by_letters(a, b);
    if (order != 0) {
      return order < 0;
    }
  }
  if (left.empty() != right.empty()) {
    return left.empty();
  }
  return one < other;
}

}  // namespace halfwatt

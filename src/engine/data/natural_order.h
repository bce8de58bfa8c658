#pragma once

#include <string_view>

namespace halfwatt {

/// Whether `one` comes before `other` as timm sorts names: runs of digits as the numbers that
/// they are, ASCII capitals like small letters. Names that are equal so far ("a1" and "A01") go
/// by their bytes, so that the order is the same everywhere.
bool natural_less(std::string_view one, std::string_view other);

}  // namespace halfwatt

#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace halfwatt {

/// JPEGs a second of processor time, read before, that one thread takes from their bytes
/// through `task`; nullopt if there is no task of that name. Ends the program where a file is
/// no JPEG.
std::optional<double> photos_a_second(std::string_view task,
                                      std::span<const std::string_view> paths);

/// Prints the rates of all tasks, in turns, and what share of libjpeg's they are: medians,
/// lowest and highest. 0, or 1 where decoding and resizing is less than half as fast.
int compare_photos(std::span<const std::string_view> paths);

}  // namespace halfwatt

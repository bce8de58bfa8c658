#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace halfwatt {

/// What `halfwatt step` tells: one line of text, so that any program can write it.
struct StepMessage {
  std::optional<double> step;   ///< the number of the step that ended; nullopt: one more
  std::optional<double> items;  ///< with a number: so far; else: of this step
  std::optional<double> loss;   ///< may be not finite
  std::uint32_t rank = 0;
  std::optional<Seconds> at;  ///< CLOCK_MONOTONIC
};

/// No message is longer.
inline constexpr std::size_t kMostBytesOfAStepMessage = 256;

/// A number of a step or of items: finite, not negative, small enough to be counted one by one.
std::optional<double> parse_count(std::string_view text);
/// Any floating-point number, nan and inf too.
std::optional<double> parse_loss(std::string_view text);

/// `step=45 items=1440 loss=0.31 rank=0 at=123.4`, or `step=+1 ...`.
std::string text(const StepMessage& message);
/// Reads that, words in any order, all but the step optional, `step=` too: `45` and `+1` are
/// messages. nullopt: none.
std::optional<StepMessage> parse_step_message(std::string_view text);

}  // namespace halfwatt

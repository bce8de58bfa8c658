#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"

namespace halfwatt {

/// Where and how often progress is shown.
struct ProgressStyle {
  bool live =
      false;       ///< a terminal: one line drawn over and over; else a plain line now and then
  int width = 80;  ///< columns; a live line stays below, so that it never wraps
  std::function<int()> width_now = {};  ///< asked before a live line is drawn; absent: `width`
  Seconds redraw{0.1};                  ///< least time between two drawings of a live line
  Seconds interval{30};                 ///< least time between two plain lines
};

/// Live where stderr is a terminal that can move its cursor, as wide as it is then.
ProgressStyle stderr_progress_style();

/// How far the work is.
struct ProgressShown {
  double done = 0;
  double total = 0;                  ///< 0 where nobody knows: no bar and no time left
  std::string text = {};             ///< what is done right now
  std::optional<Seconds> left = {};  ///< absent: from the speed so far
};

/// A line of progress that is gone when it leaves its scope. Draws only when it is called, so
/// it needs no thread, and takes its time from `clock`, so it can be tested.
class ProgressLine {
 public:
  /// Keeps `clock` and `out`, which outlive it.
  ProgressLine(const Clock& clock, std::ostream& out, const ProgressStyle& style);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows `progress`, unless it was shown a moment ago; a finished one is always shown live.
  void update(const ProgressShown& progress);
  /// Writes a line that stays, above a live one.
  void say(std::string_view line);
  /// Removes a live line, for others to write; the next update draws it again.
  void clear();

 private:
  void draw(const ProgressShown& progress, Seconds now);
  void measure();

  const Clock& clock_;
  std::ostream& out_;
  ProgressStyle style_;
  Seconds started_;
  std::optional<Seconds> drawn_at_;
  std::string drawn_;     ///< the live line that is on the screen now
  bool crowded_ = false;  ///< a line did not fit: the bar is short, and stays so at this width
};

}  // namespace halfwatt

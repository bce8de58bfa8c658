#include "report/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "report/text_layout.h"

namespace halfwatt {
namespace {

constexpr int kBar = 24;  // characters
constexpr int kShortBar = 8;
// Columns that stay free: for the "^C" that a terminal echoes, and the cursor behind it.
constexpr int kEcho = 3;
constexpr std::string_view kWipe = "\r\x1b[K";

/// "4 s", "3:05" (minutes), "2:03:05" (hours).
std::string duration(Seconds time) {
  constexpr double kLongest = 1e6;  // eleven days; more is a guess not worth a number
  if (!(time.value() < kLongest)) {
    return "long";
  }
  const auto seconds = static_cast<long>(std::lround(std::max(0.0, time.value())));
  if (seconds < 60) {
    return fmt::format("{} s", seconds);
  }
  if (seconds < 3600) {
    return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  }
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::optional<Seconds> time_left(const ProgressShown& progress, Seconds elapsed) {
  if (progress.left) {
    return progress.left;
  }
  if (progress.total <= 0 || progress.done <= 0) {
    return std::nullopt;
  }
  const double to_do = std::max(0.0, progress.total - progress.done);
  return elapsed * (to_do / progress.done);
}

// Counts in full: 14700 steps are no "1.47e+04".
std::string amount(double value) {
  constexpr double kExact = 1e15;
  return value == std::floor(value) && std::abs(value) < kExact ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{:.4g}", value);
}

// `bar` in characters, 0 for none.
std::string line_of(const ProgressShown& progress, Seconds elapsed, int bar) {
  std::string line;
  if (progress.total > 0) {
    const double share = std::clamp(progress.done / progress.total, 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(std::lround(share * bar));
    line = bar > 0 ? fmt::format("[{:.<{}}] ", std::string(filled, '#'), bar) : "";
    line += fmt::format("{}/{}", amount(progress.done), amount(progress.total));
  } else {
    line = amount(progress.done);
  }
  const std::optional<Seconds> left = time_left(progress, elapsed);
  line += left ? fmt::format(", {} left", duration(*left))
               : fmt::format(", {} so far", duration(elapsed));
  return progress.text.empty() ? line : line + "  " + printable(progress.text);
}

// Of a line that is too wide the last parts go first, whole: half a number is none. Parts have
// two spaces between them; the first two, how far it is and what it is, stay and lose their
// middle.
std::string fitting(std::string line, int width) {
  constexpr std::string_view kGap = "  ";
  const std::size_t least = line.find(kGap);
  while (display_width(line) > width) {
    const std::size_t last = line.rfind(kGap);
    if (last == line.npos || last == least) {
      return shortened(line, width);
    }
    line.resize(last);
  }
  return line;
}

}  // namespace

ProgressStyle stderr_progress_style() {
  ProgressStyle style;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  style.live = isatty(STDERR_FILENO) == 1 && !dumb;
  style.width_now = [otherwise = style.width] {
    winsize size{};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : otherwise;
  };
  return style;
}

ProgressLine::ProgressLine(const Clock& clock, std::ostream& out, const ProgressStyle& style)
    : clock_(clock), out_(out), style_(style), started_(clock.now()) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(const ProgressShown& progress) {
  const Seconds now = clock_.now();
  const bool finished = progress.total > 0 && progress.done >= progress.total;
  // A live line is drawn at once; the first plain one waits, too: a run of seconds needs none.
  const bool due = style_.live ? !drawn_at_ || now - *drawn_at_ >= style_.redraw
                               : now - drawn_at_.value_or(started_) >= style_.interval;
  if (due || (finished && style_.live)) {
    draw(progress, now);
  }
}

void ProgressLine::draw(const ProgressShown& progress, Seconds now) {
  drawn_at_ = now;
  if (!style_.live) {
    out_ << line_of(progress, now - started_, 0) << '\n' << std::flush;
    return;
  }
  measure();
  std::string line = line_of(progress, now - started_, crowded_ ? kShortBar : kBar);
  if (!crowded_ && display_width(line) > style_.width - kEcho) {
    crowded_ = true;
    line = line_of(progress, now - started_, kShortBar);
  }
  std::string cut = fitting(line, style_.width - kEcho);
  if (cut != drawn_) {
    out_ << kWipe << cut << std::flush;
    drawn_ = std::move(cut);
  }
}

// A window that became narrower has wrapped the line that is there; where that went only the
// terminal knows, and what is above it is somebody else's. From here on nothing wraps.
void ProgressLine::measure() {
  const int width = style_.width_now ? style_.width_now() : style_.width;
  crowded_ = crowded_ && width == style_.width;
  style_.width = width;
}

void ProgressLine::say(std::string_view line) {
  const std::string below = drawn_;
  clear();
  out_ << printable(line) << '\n' << below << std::flush;
  drawn_ = below;
}

void ProgressLine::clear() {
  if (!drawn_.empty()) {
    out_ << kWipe << std::flush;
    drawn_.clear();
  }
}

}  // namespace halfwatt

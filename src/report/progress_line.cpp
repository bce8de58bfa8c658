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

std::string line_of(const ProgressShown& progress, Seconds elapsed, bool bar) {
  std::string line;
  if (progress.total > 0) {
    const double share = std::clamp(progress.done / progress.total, 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(std::lround(share * kBar));
    line = bar ? fmt::format("[{:.<{}}] ", std::string(filled, '#'), kBar) : "";
    line += fmt::format("{:.4g}/{:.4g}", progress.done, progress.total);
  } else {
    line = fmt::format("{:.4g}", progress.done);
  }
  const std::optional<Seconds> left = time_left(progress, elapsed);
  line += left ? fmt::format(", {} left", duration(*left))
               : fmt::format(", {} so far", duration(elapsed));
  return progress.text.empty() ? line : line + "  " + printable(progress.text);
}

}  // namespace

ProgressStyle stderr_progress_style() {
  ProgressStyle style;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  style.live = isatty(STDERR_FILENO) == 1 && !dumb;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = size.ws_col;
  }
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
  const std::string line = line_of(progress, now - started_, style_.live);
  if (!style_.live) {
    out_ << line << '\n' << std::flush;
    return;
  }
  std::string cut = shortened(line, style_.width - 1);
  if (cut != drawn_) {
    out_ << kWipe << cut << std::flush;
    drawn_ = std::move(cut);
  }
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

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace halfwatt {

/// Cuts what a program prints for a terminal into lines of plain text: at newline, carriage
/// return, backspace and wherever an escape sequence moves the cursor; colours are taken out.
/// Needs a few kilobytes, whatever is printed.
class OutputLines {
 public:
  /// `is_whole`: nothing can follow; else the rest of the line is still to come. True from the
  /// sink: it needs no longer part of this line before the whole.
  using Sink = std::function<bool(std::string_view line, bool is_whole)>;

  /// Longer lines are cut off here; the rest is not looked at.
  static constexpr std::size_t kMostBytes = 4096;

  /// `bytes`: the next of them, cut anywhere.
  void take(std::string_view bytes, const Sink& sink);
  /// There will be no more of this line.
  void end(const Sink& sink);

 private:
  enum class State { text, escape, sequence, string, string_escape };
  void take_text(char c, const Sink& sink);
  void take_escape(char c, const Sink& sink);

  std::string line_;
  bool is_settled_ = false;  ///< the sink needs no part of this line
  State state_ = State::text;
  std::size_t sequence_bytes_ = 0;
};

}  // namespace halfwatt

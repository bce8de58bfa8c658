#include "progress/output_lines.h"

namespace halfwatt {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\x07';
// A real sequence is shorter; a longer one is binary data.
constexpr std::size_t kMostBytesOfASequence = 256;
// The final bytes of control sequences that move the cursor or erase: ECMA-48, 8.3.
constexpr std::string_view kMoves = "ABCDEFGHJKSTfsu";

bool is_final(char c) { return c >= '@' && c <= '~'; }

bool ends_line(char c) { return c == '\n' || c == '\r' || c == '\b'; }

}  // namespace

void OutputLines::take(std::string_view bytes, const Sink& sink) {
  for (const char c : bytes) {
    if (state_ == State::text) {
      take_text(c, sink);
    } else {
      take_escape(c, sink);
    }
  }
  if (!is_settled_ && !line_.empty()) {
    is_settled_ = sink(line_, false);
  }
}

void OutputLines::end(const Sink& sink) {
  if (!line_.empty()) {
    sink(line_, true);
    line_.clear();
  }
  is_settled_ = false;
}

void OutputLines::take_text(char c, const Sink& sink) {
  if (c == kEscape) {
    state_ = State::escape;
  } else if (ends_line(c)) {
    end(sink);
  } else if (line_.size() < kMostBytes && (static_cast<unsigned char>(c) >= ' ' || c == '\t')) {
    line_ += c;
  }
}

void OutputLines::take_escape(char c, const Sink& sink) {
  if (state_ == State::escape) {
    sequence_bytes_ = 0;
    state_ = c == '[' ? State::sequence : c == ']' ? State::string : State::text;
    return;
  }
  if (++sequence_bytes_ > kMostBytesOfASequence || (ends_line(c) && c != '\b')) {
    state_ = State::text;
    take_text(c, sink);
  } else if (state_ == State::sequence && is_final(c)) {
    state_ = State::text;
    if (kMoves.find(c) != std::string_view::npos) {
      end(sink);
    }
  } else if (state_ == State::string) {
    state_ = c == kBell ? State::text : c == kEscape ? State::string_escape : State::string;
  } else if (state_ == State::string_escape) {
    state_ = State::text;
  }
}

}  // namespace halfwatt

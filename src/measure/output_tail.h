#pragma once

#include <string>
#include <string_view>

namespace halfwatt {

/// The end of a program's output, whatever it prints and however much: for messages, and to
/// see why it failed.
class OutputTail {
 public:
  void add(std::string_view bytes);
  void clear() { kept_.clear(); }

  /// The last line with something to read on it, of printable characters and shortened; empty
  /// where there is none.
  std::string last_line() const;
  /// Whether it says that memory ran out, of the card or of the machine.
  bool tells_out_of_memory() const;

 private:
  std::string kept_;
};

}  // namespace halfwatt

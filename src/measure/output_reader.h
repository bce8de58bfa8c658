#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "measure/spawn.h"

namespace halfwatt {

/// Reads a program's output as it comes, in a thread of its own: a program must never wait for
/// us to read, and its steps are dated when they are printed.
class OutputReader {
 public:
  struct Files {
    int output = -1;    ///< what to read; does not block
    int messages = -1;  ///< another file to look at; -1 for none
  };
  /// `take` gets the bytes, `message` is called when the other file is readable; both in the
  /// thread. The files outlive the reader.
  OutputReader(Files files,
               std::function<void(std::string_view)> take,
               std::function<void()> message);
  OutputReader(const OutputReader&) = delete;
  OutputReader& operator=(const OutputReader&) = delete;
  /// Takes what is there already, and ends the thread.
  ~OutputReader();

 private:
  void run(Files files);
  bool read_some(int file);

  std::function<void(std::string_view)> take_;
  std::function<void()> message_;
  OwnedFile wake_;
  std::thread thread_;
};

}  // namespace halfwatt

#pragma once

#include <string>
#include <utility>

namespace halfwatt {

/// What went wrong, as far as a script that reads the exit status needs to know.
enum class ErrorKind {
  bad_input,        ///< a flag, a file or a value the user gave
  device,           ///< no device, a lost one, or no permission for it
  workload,         ///< the measured program failed or is numerically dead
  interrupted,      ///< the user asked to stop
  not_restored,     ///< a limit could not be put back
  not_executable,   ///< a command to be run is there and cannot be executed
  no_such_command,  ///< a command to be run is not there
};

/// An expected failure: its kind and one line that says what was found, what was needed and
/// which flag or file mends it.
struct Error {
  ErrorKind kind = ErrorKind::bad_input;
  std::string message;
};

/// The documented exit status of `kind`: 2 bad input, 3 device, 4 workload, 5 interrupted,
/// 6 a limit could not be put back, and a shell's 126 and 127 for a command that did not start.
constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input:
      return 2;
    case ErrorKind::device:
      return 3;
    case ErrorKind::workload:
      return 4;
    case ErrorKind::interrupted:
      return 5;
    case ErrorKind::not_restored:
      return 6;
    case ErrorKind::not_executable:
      return 126;
    case ErrorKind::no_such_command:
      return 127;
  }
  return 2;
}

/// Shorthand for the commonest error.
inline Error bad_input(std::string message) {
  return {ErrorKind::bad_input, std::move(message)};
}

}  // namespace halfwatt

#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "measure/spawn.h"

namespace halfwatt {

/// The terminal that we were started on, if there is one: who is in front of it, and its modes.
/// Takes it back, and restores the modes if a job left them changed, with its end.
class Terminal {
 public:
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// The open terminal; -1 for none.
  int file() const { return file_.get(); }
  /// Whether our own process group is the one that reads from it.
  bool is_ours() const;
  /// Lets `group` read from it and get its Ctrl-C.
  void give(pid_t group);
  /// Back to our own group. The modes that were found come back if `restore_modes`.
  void take_back(bool restore_modes);

 private:
  OwnedFile file_;
  std::optional<termios> modes_;
  bool given_ = false;
};

/// A pseudo terminal for a program whose output is to be read as it comes: a pipe would make
/// most programs keep it back in blocks.
struct PseudoTerminal {
  OwnedFile ours;
  OwnedFile theirs;
};

/// Opens one that changes no byte on its way. Errors: the system has none left.
Result<PseudoTerminal> open_pseudo_terminal();

}  // namespace halfwatt

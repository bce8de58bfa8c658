#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace halfwatt {

/// A command with what was typed behind it.
struct Call {
  const Command* command = nullptr;
  Invocation invocation;
};

/// `halfwatt` alone, or with --help, --version, or COMMAND --help.
struct HelpWanted {
  const Command* command = nullptr;  ///< null: of the whole program
};
struct VersionWanted {};
struct NothingTyped {};

using Typed = std::variant<Call, HelpWanted, VersionWanted, NothingTyped>;

/// Reads a command line (without the program's name) by the table of commands. Errors: bad
/// input that names the word and the command whose --help tells more.
Result<Typed> parse(const std::vector<std::string>& words);

}  // namespace halfwatt

#pragma once

#include <string>

#include "cli/command.h"

namespace halfwatt {

inline constexpr std::string_view kVersion = "0.1.0";

/// Help of the whole program: what it is, its commands, its exit statuses.
std::string program_help();
/// Help of one command.
std::string command_help(const Command& command);
/// The man page halfwatt(1), in roff, from the same table.
std::string man_page();

}  // namespace halfwatt

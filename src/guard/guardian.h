#pragma once

#include <string_view>

#include "guard/guardian_state.h"

namespace halfwatt {

/// The hidden word on the command line that makes the program a guardian.
inline constexpr std::string_view kGuardianVerb = "__guardian";

/// Whether this process was started to be a guardian: asked first of all in main().
bool is_guardian(int argc, char** argv);

/// The guardian's whole life: the process that writes limits, and puts them back when its
/// parent says so, dies, or TERM comes. Speaks on standard input, a socket of packets. Returns
/// the exit status; tests give `at` to die on the way.
int guardian_main(int argc, char** argv, const StateHook& at = {});

}  // namespace halfwatt

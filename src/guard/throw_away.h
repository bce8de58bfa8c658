#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "guard/descriptor.h"

namespace halfwatt {

/// The variable by which a throw-away copy's processes are known, whatever session or parent
/// they went to.
inline constexpr std::string_view kCopyVariable = "HALFWATT_COPY";

/// A throw-away copy of a job, as its processes are found by whoever survives halfwatt.
struct ThrowAway {
  std::string mark = {};        ///< `HALFWATT_COPY=...` in their environment; empty: no copy
  Descriptor cgroup_kill = {};  ///< of the cgroup that holds them; may be closed
};

/// Ends what lives of it: SIGTERM, up to 5 s, SIGKILL. Only processes of `user` and those in
/// the cgroup; everybody's for root. Needs pidfds (Linux 5.3) without a cgroup.
void end_throw_away(const ThrowAway& copy, uid_t user);

}  // namespace halfwatt

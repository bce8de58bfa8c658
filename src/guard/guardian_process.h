#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "guard/descriptor.h"

namespace halfwatt {

/// A guardian that was just started, and our end of the line to it.
struct GuardianProcess {
  pid_t pid = -1;
  Descriptor socket;  ///< closed on exec, so that no child of ours keeps it open
};

/// Starts `program` as the guardian of `cards`: as we are, or by sudo where a card needs a
/// privilege that we lack and sudo grants it. Errors: it cannot be started.
Result<GuardianProcess> start_guardian(const std::string& program,
                                       const std::vector<std::string>& cards);

}  // namespace halfwatt

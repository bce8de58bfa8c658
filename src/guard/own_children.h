#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace halfwatt {

/// Starts a child that this process needs for itself (a guardian, a question to sudo) by
/// `start`, which returns its id, or -1 where there is none. Whoever asks own_children()
/// meanwhile waits until it is known.
pid_t start_own_child(const std::function<pid_t()>& start);

/// Waits until it ended: its wait status, or -1 where somebody else took that.
int end_of_own_child(pid_t child);

/// Those that were started and not waited for. Asked after processes were listed it holds every
/// one of ours among them: there is no moment at which such a child is there and unknown.
std::vector<pid_t> own_children();

}  // namespace halfwatt

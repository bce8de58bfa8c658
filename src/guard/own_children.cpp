#include "guard/own_children.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace halfwatt {
namespace {

/// One for the process, as the children are: any thread may start one or look for a job's.
struct Known {
  std::mutex mutex;
  std::vector<pid_t> children;
};

Known& known() {
  static Known one;
  return one;
}

}  // namespace

pid_t start_own_child(const std::function<pid_t()>& start) {
  const std::lock_guard lock(known().mutex);
  const pid_t child = start();
  if (child > 0) {
    known().children.push_back(child);
  }
  return child;
}

int end_of_own_child(pid_t child) {
  // Its status stays where it is meanwhile, and with it its number: nobody else can get that
  // while it counts as ours.
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard lock(known().mutex);
  int status = -1;
  if (::waitpid(child, &status, WNOHANG) != child) {
    status = -1;
  }
  auto& all = known().children;
  all.erase(std::remove(all.begin(), all.end(), child), all.end());
  return status;
}

std::vector<pid_t> own_children() {
  const std::lock_guard lock(known().mutex);
  return known().children;
}

}  // namespace halfwatt

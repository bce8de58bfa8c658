#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "guard/descriptor.h"

namespace halfwatt {

/// A guardian that runs, and our end of the line to it. Until it is told to hold cards it has
/// touched nothing. With its owner the line ends, which it takes for our death: it puts back
/// what it holds, and is waited for.
class GuardianProcess {
 public:
  /// What it may have to write to.
  enum class Reach { simulated_cards, real_cards };

  /// None.
  GuardianProcess() = default;
  /// Starts `program` as a guardian: as we are, or by sudo where it is for real cards, we lack
  /// the privilege and sudo grants it. Errors: it cannot be started.
  static Result<GuardianProcess> start(const std::string& program, Reach reach);
  GuardianProcess(GuardianProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  GuardianProcess& operator=(GuardianProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~GuardianProcess();

  bool is_started() const { return pid_ > 0; }
  /// The guardian, or the sudo that stands between; -1 for none.
  pid_t pid() const { return pid_; }
  /// Closed on exec, so that no child of ours keeps it open.
  int socket() const { return socket_.number(); }

 private:
  pid_t pid_ = -1;
  Descriptor socket_;
};

}  // namespace halfwatt

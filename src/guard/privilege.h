#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace halfwatt {

/// Whether this process may set limits: CAP_SYS_ADMIN is in force, which root in a container
/// often lacks.
bool may_set_limits();

/// What lets a user set limits who may not: one clause for the end of a message.
std::string ways_to_set_limits();

/// Who called sudo.
struct CallingUser {
  uid_t user = 0;
  gid_t group = 0;
  std::string name;
  std::string home;
};

/// By SUDO_UID and SUDO_GID; nullopt where this process was not started by sudo, or by root.
std::optional<CallingUser> calling_user();

/// Goes on as the user who called sudo, with his groups and HOME; harmless without one. The
/// guardian is started before. Root can be had back by this process alone (RootAgain), never by
/// what it starts. Errors: the kernel refuses.
Result<void> drop_privileges();

/// Whether sudo starts something without asking.
bool sudo_asks_nothing();
/// Lets sudo ask for the password on the terminal, once; false where it was not given.
bool let_sudo_ask();

/// Makes the calling thread root for its scope where drop_privileges() dropped root, so that a
/// guardian that died can be replaced. Other threads stay what they are.
class RootAgain {
 public:
  RootAgain();
  ~RootAgain();
  RootAgain(const RootAgain&) = delete;
  RootAgain& operator=(const RootAgain&) = delete;

 private:
  bool raised_ = false;
  uid_t user_ = 0;
};

}  // namespace halfwatt

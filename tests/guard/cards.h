#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "device/limit_file.h"
#include "guard/guardian_client.h"

namespace halfwatt {

/// Some simulated cards whose limits lie in files, and a state folder, all gone with it.
class Cards {
 public:
  static constexpr Watts kFound{350};

  explicit Cards(int count = 1);
  ~Cards();
  Cards(const Cards&) = delete;
  Cards& operator=(const Cards&) = delete;

  LimitFile& operator[](std::size_t card) { return files_[card]; }
  std::size_t size() const { return files_.size(); }
  std::filesystem::path folder() const { return folder_; }
  std::filesystem::path state() const { return folder_ / "state"; }
  std::vector<std::string> names() const;
  /// An order for a guardian of all of them; this program is the guardian.
  GuardianOrder order() const;
  bool all_at(Watts limit) const;

 private:
  std::filesystem::path folder_;
  std::vector<LimitFile> files_;
};

/// Waits until `condition` holds, at most `seconds`; whether it does.
bool wait_until(const std::function<bool()>& condition, double seconds = 5);

/// A child process that runs `body` and ends with what it returns.
pid_t start_child(const std::function<int()>& body);
/// Waits for its end: the wait status.
int end_of(pid_t child);

}  // namespace halfwatt

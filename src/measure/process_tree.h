#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/spawn.h"

namespace halfwatt {

/// One process, as /proc tells it.
struct ProcessInfo {
  pid_t id = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  bool zombie = false;  ///< it ended and nobody asked for its status yet
  std::string name;     ///< at most 15 characters, as the kernel keeps it
};

/// Every process that can be seen now.
std::vector<ProcessInfo> all_processes();

/// Makes this process the parent of all descendants whose own parent ends, so that one that
/// left its group and session is still found. Errors: the kernel refuses.
Result<void> adopt_orphans();

/// Everything that a job started, whatever group or session it went to: all descendants, and
/// orphans that this process adopted. Needs adopt_orphans().
class ProcessTree {
 public:
  /// Call before the job is started: children that are there already are not the job's.
  ProcessTree();
  /// The job's first process, once it runs.
  void set_leader(pid_t leader) { leader_ = leader; }
  /// A child of ours that is not the job's.
  void leave_out(pid_t child) { ours_.push_back(child); }

  /// What lives of the job, its leader included; zombies too, with `zombie` set.
  std::vector<ProcessInfo> members() const;
  /// Sends `signal` to all of them; those that the job itself protects (another user's) are
  /// skipped.
  void send(int signal) const;
  /// Takes the status of adopted orphans that ended. Never the leader's.
  void reap() const;

 private:
  bool is_ours(const ProcessInfo& process) const;

  pid_t leader_ = 0;
  std::vector<pid_t> ours_;
};

/// A cgroup of version 2 for one job: nothing leaves it by changing session or parent. Removed
/// with its owner, if it is empty by then.
class JobCgroup {
 public:
  /// Below our own cgroup; nullopt where there is none that we may write to. Removes those that
  /// a halfwatt that was killed left empty.
  static std::optional<JobCgroup> create();
  JobCgroup(JobCgroup&& other) noexcept;
  JobCgroup& operator=(JobCgroup&&) = delete;
  ~JobCgroup();

  /// For SpawnOptions::cgroup.
  int entrance() const { return entrance_.get(); }
  /// The open `cgroup.kill`; -1 where the kernel is too old for that (5.14).
  int killer() const { return killer_.get(); }
  /// SIGKILL to everything in it, at once; false without a killer().
  bool kill() const;
  bool empty() const;
  const std::string& folder() const { return folder_; }

 private:
  JobCgroup(std::string folder, OwnedFile entrance);
  std::string folder_;
  OwnedFile entrance_;
  OwnedFile killer_;
};

}  // namespace halfwatt

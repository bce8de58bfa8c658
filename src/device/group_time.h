#pragma once

#include <sys/types.h>

#include <ctime>
#include <vector>

#include "base/units.h"

namespace halfwatt {

/// The processor time of a process group, of which this process need not be the parent. Members
/// that join later are found by look(). A member that ends takes with it what it used since the
/// last reading, and one that lives between two looks is never seen: a group of many short
/// processes uses more than is told.
class GroupTime {
 public:
  /// From now on. `group` lives.
  explicit GroupTime(pid_t group);

  /// Processor time of the members known so far: of all their threads, and only growing. One
  /// cheap call for each member.
  Seconds run();
  /// Time that they waited for a processor, as of the last look(); zero where the kernel does
  /// not tell (CONFIG_SCHED_INFO).
  Seconds waited() const { return waited_; }
  /// Finds the members of now and how long they waited: one system call for each process of
  /// the machine, one file for each thread of the group.
  void look();

 private:
  struct Member {
    pid_t id = 0;
    clockid_t clock = 0;
    Seconds run;     ///< as its clock showed it last
    Seconds waited;  ///< of its threads that live
    bool present = false;
  };

  void find(pid_t process);
  void add_waits(Member& member);

  pid_t group_;
  std::vector<Member> members_;
  Seconds run_;
  Seconds waited_;
  bool first_look_ = true;
};

}  // namespace halfwatt

#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "guard/descriptor.h"
#include "guard/guardian_process.h"
#include "guard/limit_guard.h"
#include "guard/throw_away.h"
#include "guard/wire.h"

namespace halfwatt {

/// What a guardian is asked to hold.
struct GuardianOrder {
  std::vector<std::string> cards;  ///< `GPU-<uuid>`, or `limit-file:` and an absolute path
  std::optional<std::string> state_dir = {};
  std::optional<Watts> max_limit = {};
  /// Where a guardian comes from; this program but in tests.
  std::string program = "/proc/self/exe";
};

/// Limits in the hands of a guardian process, which puts them back when this process dies. If
/// the guardian dies, a thread that watches it starts another, which puts the limits back at
/// once; check() then tells. Safe to use from several threads.
///
/// Start its GuardianProcess before the process has other threads, NVML or CUDA.
class GuardianClient final : public LimitGuard {
 public:
  /// Lets `guardian`, which was started before, hold the cards; without one it starts it, with
  /// privilege where a card needs it. Errors: see HeldCard::hold(); or none could be started.
  static Result<std::unique_ptr<GuardianClient>> start(GuardianOrder order,
                                                       GuardianProcess guardian = {});
  /// Reads the same without a guardian, a lock or a journal; nothing can be set. Errors: a card
  /// that cannot be read or takes no limit.
  static Result<std::unique_ptr<GuardianClient>> look(GuardianOrder order);
  GuardianClient(const GuardianClient&) = delete;
  GuardianClient& operator=(const GuardianClient&) = delete;
  /// Restores if nobody did; what fails then is said on stderr.
  ~GuardianClient() override;

  Watts found() const override;
  /// The same limit for every card. If one refuses, those before it go back to what they had.
  Result<Watts> set(Watts limit) override;
  /// Releases the cards: nothing can be set any more.
  Result<void> restore() override;
  Result<void> check() override;

  /// What each card said before anything was written, in the order of the cards.
  const std::vector<LimitState>& states() const { return states_; }
  /// The highest limit that every card takes: the top of a search.
  Watts top() const;
  /// The lowest one that every card takes.
  Watts bottom() const;
  /// What the user should be told: an earlier run put back, a limit that may rise, what here
  /// may kill halfwatt and guardian at once.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Sets one card's limit and reads it back.
  Result<Watts> set_card(std::size_t card, Watts limit);
  /// Has `group` continued (SIGCONT) on every way out, in case it is stopped then.
  Result<void> continue_group(pid_t group);
  /// Has the throw-away copy whose processes carry `mark` ended should this process die: the
  /// one that is started next, in place of the one before. `cgroup_kill` is that of its cgroup,
  /// if it has one, else -1; see ThrowAway.
  void end_copy(const std::string& mark, int cgroup_kill);
  /// Whether a guardian is there.
  bool alive() const;
  /// The process that stands between: the guardian, or sudo with it.
  pid_t guardian_pid() const;

 private:
  explicit GuardianClient(GuardianOrder order) : order_(std::move(order)) {}
  Result<void> spawn();
  Result<std::vector<std::string>> first_hold();
  /// One answer; nullopt when the guardian is gone.
  std::optional<Message> exchange(const Message& request, int file = -1);
  Result<Message> ask(const Message& request, bool last = false);
  /// Tells a new guardian what the dead one knew; false when it died, too.
  bool tell_next();
  /// What the guardian remarks.
  Result<std::vector<std::string>> hold();
  void watch();
  Result<std::vector<std::string>> replace();
  void revive();
  void look_for_another_guardian();

  GuardianOrder order_;
  std::vector<LimitState> states_;
  std::vector<std::string> remarks_;

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable revived_;
  std::vector<std::optional<Watts>> last_;  ///< what was set on each card
  std::vector<pid_t> groups_;
  ThrowAway copy_;
  GuardianProcess process_;
  unsigned deaths_ = 0;  ///< of guardians, seen by the watch
  std::optional<Error> disturbance_;
  std::optional<Error> lost_;  ///< no guardian is left and none can be started
  bool released_ = false;

  Descriptor stop_;  ///< wakes the watch to end it
  std::thread watcher_;
};

}  // namespace halfwatt

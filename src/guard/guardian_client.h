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
#include "guard/limit_guard.h"
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
/// Start the first one before the process has other threads, NVML or CUDA. Children never
/// inherit the socket.
class GuardianClient final : public LimitGuard {
 public:
  /// Starts a guardian, with privilege where a card needs it, and lets it hold the cards.
  /// Errors: see HeldCard::hold(); or no guardian could be started.
  static Result<std::unique_ptr<GuardianClient>> start(GuardianOrder order);
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
  /// Whether a guardian is there.
  bool alive() const;
  /// The process that stands between: the guardian, or sudo with it.
  pid_t guardian_pid() const;

 private:
  explicit GuardianClient(GuardianOrder order) : order_(std::move(order)) {}
  Result<void> spawn();
  Result<std::vector<std::string>> spawn_and_hold();
  /// One answer; nullopt when the guardian is gone.
  std::optional<Message> exchange(const Message& request);
  Result<Message> ask(const Message& request, bool last = false);
  /// What the guardian remarks.
  Result<std::vector<std::string>> hold();
  void watch();
  Result<std::vector<std::string>> replace();
  void revive();
  void reap();

  GuardianOrder order_;
  std::vector<LimitState> states_;
  std::vector<std::string> remarks_;

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable revived_;
  std::vector<std::optional<Watts>> last_;  ///< what was set on each card
  std::vector<pid_t> groups_;
  Descriptor socket_;
  pid_t pid_ = -1;
  unsigned deaths_ = 0;  ///< of guardians, seen by the watch
  std::optional<Error> disturbance_;
  std::optional<Error> lost_;  ///< no guardian is left and none can be started
  bool released_ = false;

  Descriptor stop_;  ///< wakes the watch to end it
  std::thread watcher_;
};

}  // namespace halfwatt

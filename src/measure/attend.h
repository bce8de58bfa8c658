#pragma once

#include <functional>
#include <optional>

#include "measure/job.h"

namespace halfwatt {

/// Signals that are meant for the job that runs in our place: while it lives they are not
/// acted on but handed over. Make one before the job, and before any thread.
class HandedSignals {
 public:
  HandedSignals();
  HandedSignals(const HandedSignals&) = delete;
  HandedSignals& operator=(const HandedSignals&) = delete;
  ~HandedSignals();

  /// Readable when one came.
  int file() const { return file_.get(); }
  /// The next one that came; nullopt for none. Does not wait.
  std::optional<int> next();

 private:
  OwnedFile file_;
  sigset_t before_{};
};

/// A process in the job's group that hears every Ctrl-C: the terminal sends it to the group in
/// front, which is not ours then, and a second one is to kill. Make one after HandedSignals.
class InterruptListener {
 public:
  InterruptListener() = default;
  InterruptListener(const InterruptListener&) = delete;
  InterruptListener& operator=(const InterruptListener&) = delete;
  ~InterruptListener();

  /// For JobOptions::before_exec, where there is a terminal.
  void join(pid_t group);
  std::optional<pid_t> process() const { return process_; }
  /// Readable when it heard one; -1 where it does not listen.
  int file() const { return heard_.get(); }
  /// How many it heard since the last call.
  int count();

 private:
  OwnedFile heard_;
  std::optional<pid_t> process_;
};

/// Waits for the end of a real job as if it had been started without us: signals and job
/// control go to it, the terminal is its own while it is in front. A second Ctrl-C kills it and
/// all that it started. `terminal` may have none; `idle` is called now and then. Afterwards the
/// terminal is ours again, with its old modes if the job was killed.
JobEnd attend(Job& job,
              Terminal& terminal,
              HandedSignals& signals,
              InterruptListener& listener,
              const std::function<void()>& idle);

}  // namespace halfwatt

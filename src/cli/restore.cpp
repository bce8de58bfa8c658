#include "cli/restore.h"

#include <fmt/format.h>

#include <optional>

#include "cli/output.h"
#include "guard/leftovers.h"

namespace halfwatt {
namespace {

std::string line_of(const KnownCard& card) {
  if (card.unreadable) {
    return card.unreadable->message;
  }
  const JournalEntry& entry = *card.entry;
  return fmt::format("{}: found at {:g} W, {}; {}", entry.card, entry.found.value(),
                     entry.intent ? fmt::format("last set to {:g} W", entry.intent->value())
                                  : "nothing was set",
                     card.holder
                         ? fmt::format("held by process {} since {} ({})", card.holder->pid,
                                       card.holder->since, card.holder->command)
                         : "nobody holds it");
}

// not_restored counts more than a limit that is left alone.
void remember(std::optional<Error>& worst, const Error& error) {
  if (!worst || (error.kind == ErrorKind::not_restored && worst->kind != error.kind)) {
    worst = error;
  }
}

Result<void> run(const Invocation& invocation) {
  std::optional<Error> worst;
  bool any = false;
  for (const KnownCard& card : known_cards(invocation.get("--state-dir"))) {
    if (!card.entry && !card.unreadable) {
      continue;
    }
    any = true;
    std::string line;
    if (invocation.has("--list")) {
      line = line_of(card);
    } else if (const auto back = put_back_known(card, invocation.has("--force")); !back) {
      remember(worst, back.error());
    } else if (back->action == RestoreAction::foreign) {
      remember(worst, Error{ErrorKind::device, back->sentence});
    } else {
      line = back->sentence;
    }
    if (!line.empty()) {
      if (const Result<void> done = print(line + "\n"); !done) {
        return done;
      }
    }
  }
  if (worst) {
    return *worst;
  }
  return any ? Result<void>() : print("no limit is left to be put back\n");
}

}  // namespace

Command restore_command() {
  Command command;
  command.name = "restore";
  command.summary = "put limits back that a halfwatt which was killed has left";
  command.description =
      "Every change of a limit is in a journal before it is made. Where halfwatt and its "
      "guardian died at once (a container's process 1, a killed cgroup), this puts the limits "
      "back. A limit that somebody else set since is left alone: both values are said, and the "
      "exit status is 3. After a restart of the machine or its driver there is nothing to put "
      "back, and the entry is closed.\n\n"
      "share/halfwatt-restore.service runs it at boot; docs/guard.md says how to run it after "
      "a "
      "service or a Slurm job.";
  command.options = {
      {"--list", "", "show the journal and change nothing"},
      {"--force", "", "write the limit that was found even over one that somebody else set"},
      {"--state-dir", "DIR", "the journal's folder, where halfwatt was given one"},
  };
  command.examples = {{"halfwatt restore --list", "what would be put back"},
                      {"sudo halfwatt restore", "put it back"}};
  command.run = run;
  return command;
}

}  // namespace halfwatt

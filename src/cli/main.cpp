#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/overview.h"
#include "cli/parse.h"
#include "cli/sweep.h"

namespace halfwatt {
namespace {

Result<void> run(const std::vector<std::string>& words) {
  const Result<Typed> typed = parse(words);
  if (!typed) {
    return typed.error();
  }
  if (const auto* call = std::get_if<Call>(&*typed)) {
    return call->command->run(call->invocation);
  }
  if (const auto* help = std::get_if<HelpWanted>(&*typed)) {
    return print(help->command != nullptr ? command_help(*help->command) : program_help());
  }
  if (std::holds_alternative<VersionWanted>(*typed)) {
    return print(fmt::format("halfwatt {}\n", kVersion));
  }
  return print(overview(look_at_machine("/")) + "\nhalfwatt --help lists all commands.\n");
}

void install_signal_handlers() {
  std::signal(SIGINT, [](int) { ask_for_interruption(); });
  std::signal(SIGTERM, [](int) { ask_for_interruption(); });
  // A record that grows over the limit of `ulimit -f` is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) {
  halfwatt::install_signal_handlers();
  const auto done = halfwatt::run(std::vector<std::string>(argv + 1, argv + argc));
  if (done) {
    return 0;
  }
  fmt::print(stderr, "halfwatt: {}\n", done.error().message);
  return halfwatt::exit_code(done.error().kind);
}

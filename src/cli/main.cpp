#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/overview.h"
#include "cli/parse.h"
#include "guard/guardian.h"

namespace halfwatt {
namespace {

Result<int> status_of(const Result<void>& done) { return done ? Result<int>(0) : done.error(); }

Result<int> run(const std::string& program, const std::vector<std::string>& words) {
  Result<Typed> typed = parse(words);
  if (!typed) {
    return typed.error();
  }
  if (auto* call = std::get_if<Call>(&*typed)) {
    call->invocation.set_program(program);
    if (call->command->run_job != nullptr) {
      return call->command->run_job(call->invocation);
    }
    return status_of(call->command->run(call->invocation));
  }
  if (const auto* help = std::get_if<HelpWanted>(&*typed)) {
    return status_of(
        print(help->command != nullptr ? command_help(*help->command) : program_help()));
  }
  if (std::holds_alternative<VersionWanted>(*typed)) {
    return status_of(print(fmt::format("halfwatt {}\n", kVersion)));
  }
  return status_of(
      print(overview(look_at_machine(), program) + "\nhalfwatt --help lists all commands.\n"));
}

// What a builder or a device throws ends in one line, like everything else.
Result<int> run_and_catch(const std::string& program, const std::vector<std::string>& words) {
  try {
    return run(program, words);
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::device, "no memory is left"};
  }
}

}  // namespace
}  // namespace halfwatt

namespace {

// Whoever starts us without the three usual files would have the next ones that we open in
// their place: a socket of the guardian would get what is meant for people.
void open_usual_files() {
  int file = -1;
  do {
    file = ::open("/dev/null", O_RDWR);
  } while (file >= 0 && file <= STDERR_FILENO);
  ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  open_usual_files();
  // Before anything else: a guardian has no threads, and lets go of what it inherits.
  if (halfwatt::is_guardian(argc, argv)) {
    return halfwatt::guardian_main(argc, argv);
  }
  // A record that grows over the limit of `ulimit -f` is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto done =
      halfwatt::run_and_catch(argc > 0 ? argv[0] : "halfwatt",
                              std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (done) {
    return *done;
  }
  halfwatt::remark(done.error().message);
  // Whoever runs a real job through us must be able to tell our failures from the job's.
  constexpr int kNotStarted = 125;
  return argc > 1 && std::string_view(argv[1]) == "run"
             ? kNotStarted
             : halfwatt::exit_code(done.error().kind);
}

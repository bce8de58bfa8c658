#include "cli/step.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "progress/step_message.h"
#include "progress/step_socket.h"

namespace halfwatt {
namespace {

std::uint32_t rank_of_environment() {
  for (const char* name : {"LOCAL_RANK", "RANK"}) {
    const char* text = std::getenv(name);
    if (text != nullptr && *text != '\0') {
      std::uint32_t rank = 0;
      std::from_chars(text, text + std::string_view(text).size(), rank);
      return rank;
    }
  }
  return 0;
}

Result<StepMessage> read_message(const Invocation& invocation) {
  StepMessage message;
  const auto& arguments = invocation.arguments();
  if (arguments.size() > 1) {
    return bad_input(fmt::format("step {}: needed one number or none", arguments[1]));
  }
  if (!arguments.empty() && !(message.step = parse_count(arguments.front()))) {
    return bad_input(fmt::format("step {}: needed the number of the step that ended, 0 or more",
                                 arguments.front()));
  }
  const auto items = invocation.get("--items");
  if (items && !(message.items = parse_count(*items))) {
    return bad_input(fmt::format("--items {}: needed a number, 0 or more", *items));
  }
  const auto loss = invocation.get("--loss");
  if (loss && !(message.loss = parse_loss(*loss))) {
    return bad_input(fmt::format("--loss {}: needed a number, nan or inf", *loss));
  }
  message.rank = rank_of_environment();
  message.at = SteadyClock().now();
  return message;
}

Result<void> run_step(const Invocation& invocation) {
  const Result<StepMessage> message = read_message(invocation);
  if (!message) {
    return message.error();
  }
  const char* socket = std::getenv("HALFWATT_SOCKET");
  if (socket != nullptr && *socket != '\0') {
    // Where nobody listens any more, the script is to go on as it would without halfwatt.
    tell_step(socket, *message);
  }
  return {};
}

}  // namespace

Command step_command() {
  Command command;
  command.name = "step";
  command.summary = "tell halfwatt, from inside a job, that a step has ended";
  command.description =
      "For shell scripts that run under halfwatt tune, sweep or run; C, C++ and Python jobs "
      "tell their steps faster through halfwatt_progress.h and halfwatt_progress.py. N is the "
      "number of the step that ended; without it, one more step has. Outside of halfwatt "
      "(HALFWATT_SOCKET unset) nothing happens, and the exit status is 0.";
  command.arguments = "[N]";
  command.options = {
      {"--items", "N", "items done: with a step's number, so far; without, in this step"},
      {"--loss", "X", "the loss after the step; nan is worth telling"},
  };
  command.examples = {
      {"halfwatt step", "one more step has ended"},
      {"halfwatt step 450 --items 14400 --loss 0.31", "step 450 has, and 14400 items so far"},
  };
  command.run = run_step;
  return command;
}

}  // namespace halfwatt

#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>

namespace halfwatt {
namespace {

std::string command_names() {
  std::string names;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  }
  return names;
}

Error not_a_command(const std::string& word) {
  return bad_input(fmt::format("{}: not a command; there are {}; see halfwatt --help", word,
                               command_names()));
}

// CLI11's messages name the word; the next step is ours to add.
Error usage_error(const Command& command, std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  return bad_input(
      fmt::format("{}: {}; see halfwatt {} --help", command.name, what, command.name));
}

// `behind` is a command of the user's, or further arguments.
Result<Typed> with_command(Call call, std::vector<std::string> behind) {
  const Command& command = *call.command;
  if (command.takes_command()) {
    call.invocation.set_command(std::move(behind));
    return Typed(std::move(call));
  }
  if (!behind.empty() && command.arguments.empty()) {
    return usage_error(command, fmt::format("{}: nothing is needed behind --", behind.front()));
  }
  for (std::string& argument : behind) {
    call.invocation.add_argument(std::move(argument));
  }
  return Typed(std::move(call));
}

// `behind`: the words after `--`.
Result<Typed> parse_call(const Command& command,
                         std::vector<std::string> words,
                         std::vector<std::string> behind) {
  CLI::App app;
  app.set_help_flag();
  app.allow_windows_style_options(false);
  // CLI11 writes through references, so the storage must not move.
  std::deque<std::vector<std::string>> values;
  std::deque<bool> switches;
  std::vector<std::string> arguments;
  for (const Option& option : command.options) {
    if (option.value.empty()) {
      app.add_flag(std::string(option.name), switches.emplace_back(false));
      continue;
    }
    auto* added = app.add_option(std::string(option.name), values.emplace_back());
    added->type_size(1)->allow_extra_args(false);
    if (!option.repeats) {
      added->expected(1);
    }
  }
  if (!command.arguments.empty() && !command.takes_command()) {
    app.add_option("arguments", arguments);
  }
  std::reverse(words.begin(), words.end());  // the order in which CLI11 takes a vector
  try {
    app.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    return usage_error(command, what.substr(0, what.find(':')) + ": a value is missing");
  } catch (const CLI::ExtrasError& error) {
    return usage_error(
        command,
        std::string(error.what()) +
            (command.arguments.starts_with("--") ? "; a command stands behind --" : ""));
  } catch (const CLI::ParseError& error) {
    return usage_error(command, error.what());
  }
  Call call{&command, {}};
  std::size_t next_value = 0;
  std::size_t next_switch = 0;
  for (const Option& option : command.options) {
    if (option.value.empty()) {
      if (switches[next_switch++]) {
        call.invocation.add(option.name, "");
      }
      continue;
    }
    for (std::string& value : values[next_value++]) {
      call.invocation.add(option.name, std::move(value));
    }
  }
  for (std::string& argument : arguments) {
    call.invocation.add_argument(std::move(argument));
  }
  return with_command(std::move(call), std::move(behind));
}

}  // namespace

Result<Typed> parse(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Typed(NothingTyped{});
  }
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || first == "help") {
    const Command* about = words.size() > 1 ? find_command(words[1]) : nullptr;
    if (words.size() > 1 && about == nullptr) {
      return not_a_command(words[1]);
    }
    return Typed(HelpWanted{about});
  }
  if (first == "--version") {
    return Typed(VersionWanted{});
  }
  const Command* command = find_command(first);
  if (command == nullptr) {
    return not_a_command(first);
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  const auto end_of_flags = std::find(rest.begin(), rest.end(), "--");
  if (std::any_of(rest.begin(), end_of_flags,
                  [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    return Typed(HelpWanted{command});
  }
  return parse_call(
      *command, std::vector<std::string>(rest.begin(), end_of_flags),
      std::vector<std::string>(end_of_flags == rest.end() ? end_of_flags : end_of_flags + 1,
                               rest.end()));
}

}  // namespace halfwatt

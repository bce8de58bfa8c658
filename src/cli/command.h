#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace halfwatt {

/// One flag of a command. Without `value` it is a switch.
struct Option {
  std::string_view name;   ///< "--keep"
  std::string_view value;  ///< what stands behind it in help: "LIST"
  std::string_view help;
  bool repeats = false;  ///< may be given several times
};

/// What a user typed behind a command's name, checked against its table.
class Invocation {
 public:
  void add(std::string_view option, std::string value);
  void add_argument(std::string value) { arguments_.push_back(std::move(value)); }

  bool has(std::string_view option) const { return values_.count(option) > 0; }
  /// The last value given; nullopt if none was.
  std::optional<std::string> get(std::string_view option) const;
  std::vector<std::string> all(std::string_view option) const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// The words behind `--`, as they were typed: a command of the user's.
  const std::vector<std::string>& command() const { return command_; }
  void set_command(std::vector<std::string> words) { command_ = std::move(words); }
  /// How the program was called: "build/release/bin/halfwatt".
  const std::string& program() const { return program_; }
  void set_program(std::string name) { program_ = std::move(name); }

  /// The value as a number within bounds, or `otherwise` if not given. Errors: bad input that
  /// names the flag.
  Result<double> number(std::string_view option,
                        double otherwise,
                        double low,
                        double high) const;
  /// The same, and a whole number.
  Result<double> whole(std::string_view option,
                       double otherwise,
                       double low,
                       double high) const;
  /// The value as numbers separated by commas.
  Result<std::vector<double>> numbers(std::string_view option,
                                      std::vector<double> otherwise) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> arguments_;
  std::vector<std::string> command_;
  std::string program_ = "halfwatt";
};

struct Example {
  std::string_view line;
  std::string_view what;
};

/// One row of the table of commands, from which help, the man page and the parser are made.
struct Command {
  std::string_view name;
  std::string_view summary;      ///< one line
  std::string_view description;  ///< paragraphs, separated by empty lines
  std::string_view arguments;    ///< "FILE...", empty for none
  std::vector<Option> options;
  std::vector<Example> examples;
  Result<void> (*run)(const Invocation& invocation) = nullptr;
  /// Instead of `run`, for a command that ends with the exit status of another program, and
  /// tells its errors itself.
  int (*run_job)(const Invocation& invocation) = nullptr;

  /// Whether words behind `--` are a command of the user's, and not arguments.
  bool takes_command() const { return arguments.find("--") != std::string_view::npos; }
};

/// All commands, in the order in which help lists them.
std::span<const Command> commands();
const Command* find_command(std::string_view name);

}  // namespace halfwatt

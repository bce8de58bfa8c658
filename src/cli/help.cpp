#include "cli/help.h"

#include <fmt/format.h>

namespace halfwatt {
namespace {

constexpr std::string_view kWhat =
    "halfwatt finds the power limit, and later the precision, batch and placement, that give "
    "the "
    "most work per watt, and proves it.";

struct ExitStatus {
  int status;
  std::string_view meaning;
};

constexpr ExitStatus kExitStatuses[] = {
    {0, "all went well"},
    {2, "wrong usage or bad input; nothing was changed"},
    {3, "no such device, a lost one, or no permission for it"},
    {4, "the workload failed, or its numbers are dead"},
    {5, "interrupted; the limit is back and the record is whole"},
    {6, "a power limit could not be put back"},
};

// Words of `text` in lines of at most `width` columns, each begun by `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) {
      lines += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
  };
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.compare(at, 2, "\n\n") == 0) {
      end_line();
      lines += "\n";
      at += 2;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view next = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + next.size() > width) {
      end_line();
    }
    line += (line.empty() || next.empty() ? "" : " ") + std::string(next);
    at = end < text.size() && text.compare(end, 2, "\n\n") != 0 ? end + 1 : end;
  }
  end_line();
  return lines;
}

std::string left_column(const Option& option) {
  return option.value.empty() ? std::string(option.name)
                              : fmt::format("{} {}", option.name, option.value);
}

std::string usage(const Command& command) {
  return fmt::format("halfwatt {}{}{}", command.name,
                     command.options.empty() ? "" : " [options]",
                     command.arguments.empty() ? "" : fmt::format(" {}", command.arguments));
}

// Text that roff must take as it is: no line may begin with its control characters.
std::string roff(std::string_view text) {
  std::string safe;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) {
      safe += "\\&";
    }
    safe += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    line_start = c == '\n';
  }
  return safe;
}

std::string roff_paragraphs(std::string_view text) {
  std::string out = roff(text);
  for (std::size_t at = out.find("\n\n"); at != std::string::npos; at = out.find("\n\n", at)) {
    out.replace(at, 2, "\n.PP\n");
  }
  return out + "\n";
}

}  // namespace

std::string program_help() {
  constexpr std::size_t kWidth = 80;
  std::string help = wrapped(kWhat, kWidth, 0);
  help += "\nUsage: halfwatt COMMAND [options]\n\nCommands:\n";
  for (const Command& command : commands()) {
    help += fmt::format("  {:<9} {}\n", command.name, command.summary);
  }
  help +=
      "\n  halfwatt alone says what this machine has and what to try next.\n"
      "  halfwatt COMMAND --help tells more about a command.\n\nExit status:\n";
  for (const ExitStatus& each : kExitStatuses) {
    help += fmt::format("  {}  {}\n", each.status, each.meaning);
  }
  return help;
}

std::string command_help(const Command& command) {
  constexpr std::size_t kWidth = 80;
  constexpr std::size_t kColumn = 26;
  std::string help =
      fmt::format("Usage: {}\n\n{}", usage(command), wrapped(command.description, kWidth, 0));
  if (!command.options.empty()) {
    help += "\nOptions:\n";
  }
  for (const Option& option : command.options) {
    const std::string left = "  " + left_column(option);
    std::string right = wrapped(option.help, kWidth, kColumn);
    if (left.size() + 1 < kColumn) {
      right.replace(0, left.size(), left);
    } else {
      right.insert(0, left + "\n");
    }
    help += right;
  }
  if (!command.examples.empty()) {
    help += "\nExamples:\n";
  }
  for (const Example& example : command.examples) {
    help += fmt::format("  {}\n{}", example.line, wrapped(example.what, kWidth, 6));
  }
  return help;
}

std::string man_page() {
  std::string page = fmt::format(
      ".TH HALFWATT 1 \"\" \"halfwatt {}\" \"User Commands\"\n"
      ".SH NAME\nhalfwatt \\- most work per watt on NVIDIA GPUs\n"
      ".SH SYNOPSIS\n.B halfwatt\n.I COMMAND\n[options]\n"
      ".SH DESCRIPTION\n{}",
      kVersion, roff_paragraphs(kWhat));
  page += ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    page += fmt::format(".SS {}\n.B {}\n.PP\n{}", roff(command.name), roff(usage(command)),
                        roff_paragraphs(command.description));
    for (const Option& option : command.options) {
      page += fmt::format(".TP\n.B {}\n{}\n", roff(left_column(option)), roff(option.help));
    }
    for (const Example& example : command.examples) {
      page += fmt::format(".PP\n{}\n.PP\n.EX\n    {}\n.EE\n", roff(example.what),
                          roff(example.line));
    }
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitStatus& each : kExitStatuses) {
    page += fmt::format(".TP\n.B {}\n{}\n", each.status, roff(each.meaning));
  }
  return page;
}

}  // namespace halfwatt

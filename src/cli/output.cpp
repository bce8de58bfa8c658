#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "report/html.h"
#include "tune/verdict_text.h"

namespace halfwatt {

std::vector<Option> share_options() {
  return {
      {"--keep", "LIST",
       "shares of the reference speed to keep, in percent; the default is 80,90,95"},
      {"--reference", "WHICH",
       "whose speed is 100 %: top, the highest measured limit (the default); default, the "
       "limit "
       "the vendor ships; max, the limit with the highest speed"},
  };
}

std::vector<Option> output_options() {
  return {
      {"--format", "FORMAT", "text (the default), json or csv; docs/verdict.md describes them"},
      {"--report", "FILE.html", "also write a page with charts that needs no network"},
  };
}

std::string_view text(Reference reference) {
  switch (reference) {
    case Reference::preset:
      return "default";
    case Reference::peak:
      return "max";
    case Reference::top:
      break;
  }
  return "top";
}

Result<Reference> reference(std::string_view word) {
  for (const auto each : {Reference::top, Reference::preset, Reference::peak}) {
    if (word == text(each)) {
      return each;
    }
  }
  return bad_input(fmt::format("--reference {}: needed top, default or max", word));
}

Result<AnalysisOptions> read_analysis_options(const Invocation& invocation,
                                              AnalysisOptions otherwise) {
  AnalysisOptions options = std::move(otherwise);
  Result<std::vector<double>> keep = invocation.numbers("--keep", options.keep_percent);
  if (!keep) {
    return keep.error();
  }
  for (const double percent : *keep) {
    if (!(percent > 0 && percent <= 100)) {
      return bad_input(
          fmt::format("--keep {:g}: needed shares above 0 and up to 100 percent", percent));
    }
  }
  options.keep_percent = std::move(*keep);
  if (const auto word = invocation.get("--reference")) {
    const Result<Reference> chosen = reference(*word);
    if (!chosen) {
      return chosen.error();
    }
    options.reference = *chosen;
  }
  options.relative_to = invocation.get("--relative-to").value_or(options.relative_to);
  return options;
}

Result<void> check_output(const Invocation& invocation) {
  const std::string format = invocation.get("--format").value_or("text");
  if (format != "text" && format != "json" && format != "csv") {
    return bad_input(fmt::format("--format {}: needed text, json or csv", format));
  }
  return {};
}

Result<void> print(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    return bad_input(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  return {};
}

std::string for_stdout(const Document& document, int width) {
  TerminalStyle style;
  style.width = width;
  // https://no-color.org: any value of NO_COLOR but an empty one turns colour off.
  const char* no_colour = std::getenv("NO_COLOR");
  style.colour = ::isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
  return render_terminal(document, style);
}

Result<void> show(const Invocation& invocation,
                  const Verdict& verdict,
                  const Document& document) {
  const std::string format = invocation.get("--format").value_or("text");
  const Result<void> printed = print(format == "json"  ? verdict_json(verdict)
                                     : format == "csv" ? verdict_csv(verdict)
                                                       : for_stdout(document));
  if (!printed) {
    return printed.error();
  }
  if (const auto path = invocation.get("--report")) {
    if (const Result<void> written = write_html(document, *path); !written) {
      return written.error();
    }
    remark(fmt::format("the report is in {}", *path));
  }
  return {};
}

}  // namespace halfwatt

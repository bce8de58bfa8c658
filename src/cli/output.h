#pragma once

#include <string>
#include <vector>

#include "base/remark.h"
#include "cli/command.h"
#include "report/document.h"
#include "report/terminal.h"
#include "tune/verdict.h"

namespace halfwatt {

/// The flags --keep and --reference, for the tables of commands.
std::vector<Option> share_options();
/// The flags --format and --report.
std::vector<Option> output_options();

/// What --keep, --reference and --relative-to say; `otherwise` where they are not given.
Result<AnalysisOptions> read_analysis_options(const Invocation& invocation,
                                              AnalysisOptions otherwise);

std::string_view text(Reference reference);
Result<Reference> reference(std::string_view word);

/// Checks --format before anything long runs.
Result<void> check_output(const Invocation& invocation);

/// Prints the verdict as --format says (text, json, csv), text with `document`, and writes
/// --report FILE.
Result<void> show(const Invocation& invocation,
                  const Verdict& verdict,
                  const Document& document);

/// Writes `text` to stdout; an error if that fails (disk full, say).
Result<void> print(std::string_view text);

/// A document for the terminal that stdout is, or for the file; in lines of at most `width`
/// columns.
std::string for_stdout(const Document& document, int width = TerminalStyle{}.width);

}  // namespace halfwatt

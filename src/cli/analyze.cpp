#include "cli/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "cli/output.h"
#include "measure/record.h"
#include "tune/import_csv.h"
#include "tune/verdict_document.h"

namespace halfwatt {
namespace {

bool is_record(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const int first = in.get();
  return first != std::ifstream::traits_type::eof() &&
         looks_like_record(std::string(1, static_cast<char>(first)));
}

/// What the files hold, and what records among them were asked.
struct Input {
  std::vector<Series> series;
  std::vector<AnalysisOptions> asked;  ///< one for each record
  std::size_t files = 0;
};

Result<void> read_as_record(const std::filesystem::path& path, Input& input) {
  const Result<Record> record = read_record(path);
  if (!record) {
    return record.error();
  }
  if (record->dropped_last_line) {
    remark(fmt::format("{}: the last line is half written; it is left out", path.string()));
  }
  AnalysisOptions asked;
  if (!record->header.keep_percent.empty()) {
    asked.keep_percent = record->header.keep_percent;
  }
  const Result<Reference> known = reference(record->header.reference);
  if (!known) {
    return bad_input(fmt::format("{}:1: field reference is '{}'; needed top, default or max",
                                 path.string(), record->header.reference));
  }
  asked.reference = *known;
  input.asked.push_back(asked);
  for (Series& each : all_series(*record)) {
    input.series.push_back(std::move(each));
  }
  return {};
}

ImportOptions import_options(const Invocation& invocation) {
  ImportOptions options;
  options.x = invocation.get("--x").value_or("");
  options.y = invocation.get("--y").value_or("");
  options.items = invocation.get("--items").value_or("");
  options.labels = invocation.all("--label");
  options.ignore = invocation.all("--ignore");
  return options;
}

Result<void> read_as_csv(const std::filesystem::path& path,
                         const ImportOptions& options,
                         Input& input) {
  Result<Imported> imported = import_csv(path, options);
  if (!imported) {
    return imported.error();
  }
  for (const std::string& line : imported->remarks) {
    remark(line);
  }
  for (Series& series : imported->series) {
    input.series.push_back(std::move(series));
  }
  return {};
}

Result<Input> read_all(const Invocation& invocation) {
  Input input;
  std::set<std::string> seen;
  for (const std::string& name : invocation.arguments()) {
    if (!seen.insert(name).second) {
      return bad_input(fmt::format("analyze: {} is given twice", name));
    }
    const Result<void> read = is_record(name)
                                  ? read_as_record(name, input)
                                  : read_as_csv(name, import_options(invocation), input);
    if (!read) {
      return read.error();
    }
    ++input.files;
  }
  return input;
}

// What a record was asked when it was made holds unless flags say otherwise; among several
// files only where all of them were asked the same.
AnalysisOptions asked_by(const Input& input) {
  const bool same = std::all_of(
      input.asked.begin(), input.asked.end(), [&input](const AnalysisOptions& each) {
        return each.keep_percent == input.asked.front().keep_percent &&
               each.reference == input.asked.front().reference;
      });
  const bool all_records = !input.asked.empty() && input.asked.size() == input.files;
  return same && all_records ? input.asked.front() : AnalysisOptions{};
}

// The cards, or the file where it does not name the card.
std::string title_of(const Verdict& verdict) {
  const Series& first = verdict.series.front().series;
  std::set<std::string> devices;
  bool watts = true;
  for (const SeriesVerdict& each : verdict.series) {
    devices.insert(each.series.device);
    watts = watts && each.series.knob.unit == "W";
  }
  return fmt::format("{} {}{}", watts ? "Power limits of" : "Limits of",
                     first.device == "unknown" ? first.source : first.device,
                     devices.size() > 1 ? fmt::format(" and {} more", devices.size() - 1) : "");
}

Result<void> run(const Invocation& invocation) {
  if (invocation.arguments().empty()) {
    return bad_input("analyze: no FILE given; see halfwatt analyze --help");
  }
  if (const Result<void> fine = check_output(invocation); !fine) {
    return fine.error();
  }
  Result<Input> input = read_all(invocation);
  if (!input) {
    return input.error();
  }
  const Result<AnalysisOptions> options = read_analysis_options(invocation, asked_by(*input));
  if (!options) {
    return options.error();
  }
  const Result<Verdict> verdict = analyze(std::move(input->series), *options);
  if (!verdict) {
    return verdict.error();
  }
  return show(invocation, *verdict, verdict_document(*verdict, title_of(*verdict)));
}

}  // namespace

Command analyze_command() {
  Command command;
  command.name = "analyze";
  command.summary = "work out the best limits from recorded measurements";
  command.description =
      "Reads records of halfwatt (JSON Lines) and CSV files and says, for each series in them, "
      "which limits keep 80, 90 and 95 % of the speed, which costs the least energy, which "
      "figures cannot be trusted, and which one limit suits all series of a card.\n\n"
      "A CSV file needs a column power_limit_w and one of ms_per_batch, time_s, throughput, "
      "tokens_per_s and the like; energy or average power are used where they are there; every "
      "other column splits the rows into series. docs/csv.md lists all names.";
  command.arguments = "FILE...";
  command.options = share_options();
  for (const Option& option : {
           Option{
               "--relative-to", "SERIES",
               "take the reference speed of this series as 100 % for all that are comparable "
               "with it"},
           Option{"--x", "NAME[=UNIT]", "column of the knob, where it is not power_limit_w"},
           Option{"--y", "NAME[=UNIT]", "column of the time or rate, where there are several"},
           Option{"--items", "NAME", "what a step yields: image, token"},
           Option{"--label", "NAME", "split series by this column, whatever it holds", true},
           Option{"--ignore", "NAME", "leave this column out", true},
       }) {
    command.options.push_back(option);
  }
  for (const Option& option : output_options()) {
    command.options.push_back(option);
  }
  command.examples = {
      {"halfwatt analyze data/rtx3090_vit_b16.csv --report study.html",
       "the recorded study, with its plots"},
      {"halfwatt analyze caps.csv --y tokens_per_s_code --format json",
       "a file with two rates, for a script"},
  };
  command.run = run;
  return command;
}

}  // namespace halfwatt

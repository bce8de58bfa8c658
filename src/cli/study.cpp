#include "cli/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/output.h"
#include "cli/overview.h"
#include "cli/simulation.h"
#include "guard/scoped_limit_guard.h"
#include "report/html.h"
#include "report/progress_line.h"
#include "tune/embedded.h"
#include "tune/import_claims.h"
#include "tune/limit_search.h"
#include "tune/tuner.h"
#include "tune/verdict_document.h"
#include "tune/verdict_text.h"

namespace halfwatt {
namespace {

constexpr double kStep = 10;  // W: the study's grid
constexpr std::uint64_t kSeed = 1;

const Claim* claim_about(const std::vector<Claim>& claims,
                         const Labels& labels,
                         double percent) {
  for (const Claim& claim : claims) {
    const bool same =
        std::all_of(claim.labels.begin(), claim.labels.end(),
                    [&](const auto& each) { return label(labels, each.first) == each.second; });
    if (same && claim.percent == percent) {
      return &claim;
    }
  }
  return nullptr;
}

// What the article says against what its own data says.
void add_claims(Document& document, const Verdict& verdict, const std::vector<Claim>& claims) {
  Table table;
  table.caption = "Where the published article disagrees with its own data (W)";
  table.columns = {
      {"series", false}, {"share"}, {"data"}, {"article"}, {"kept at the article's"}};
  std::size_t compared = 0;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    for (const KeepVerdict& keep : each.keep) {
      const Claim* claim = claim_about(claims, each.series.labels, keep.percent);
      if (claim == nullptr || !keep.limit) {
        continue;
      }
      ++compared;
      if (*keep.limit == claim->limit.value()) {
        continue;
      }
      double kept = 0;
      for (std::size_t k = 0; k < each.curve.points.size(); ++k) {
        if (each.curve.points[k].x == claim->limit.value()) {
          kept = 100 * each.curve.share(k);
        }
      }
      table.rows.push_back({{verdict.names[i]},
                            {fmt::format("{:g} %", keep.percent)},
                            {number_text(*keep.limit), Emphasis::good},
                            {number_text(claim->limit.value()), Emphasis::bad},
                            {fmt::format("{:.2f} %", kept)}});
    }
  }
  const std::size_t wrong = table.rows.size();
  document.blocks.push_back(std::move(table));
  document.blocks.push_back(Paragraph{
      fmt::format("{} of {} published limits are not the lowest that keep their share.", wrong,
                  compared),
      Emphasis::faint});
}

Result<std::vector<Measurement>> play(const RecordedSeries& series) {
  Simulation simulation({DeviceId::Kind::simulated, "rtx3090"}, series, usual_disturbance(),
                        kSeed);
  Result<ScopedLimitGuard> guard = ScopedLimitGuard::hold(simulation.limit);
  if (!guard) {
    return guard.error();
  }
  const LimitSpace space{power_limit_knob(kStep), series.card.limits.min.value(),
                         series.card.limits.max.value(), kStep};
  const ReferencedSearch search(
      space.knob, space.max,
      std::make_unique<LimitSearch>(space, space.max, AnalysisOptions{}.keep_percent,
                                    SearchBudget{}));
  Tuner tuner({simulation.clock, simulation.card, simulation.workload, &*guard}, MeterRules{},
              [] { return false; });
  std::vector<Measurement> measured;
  const Result<void> done =
      tuner.run(search, measured, [](const auto&) { return Result<void>(); });
  if (!done) {
    return done.error();
  }
  return measured;
}

std::vector<Cell> search_row(const SeriesVerdict& recorded,
                             const std::string& name,
                             const SeriesVerdict& found) {
  std::vector<Cell> row = {
      {name},
      {fmt::format("{} of {}", found.curve.points.size(), recorded.curve.points.size())},
      {fmt::format("{}", found.curve.windows)}};
  for (std::size_t k = 0; k < found.keep.size(); ++k) {
    const auto& limit = found.keep[k].limit;
    const bool same = limit == recorded.keep[k].limit;
    row.push_back({limit ? number_text(*limit) + (found.keep[k].resolvable ? "" : "?") : "-",
                   same ? Emphasis::good : Emphasis::plain});
  }
  row.push_back({found.least ? number_text(found.least->limit) : "unknown"});
  return row;
}

// Plays every live series back on the simulated card and lets the search find its limits.
Result<void> add_search(Document& document, const Verdict& verdict) {
  Table table;
  table.caption = "The search, on the study played back by a simulated card with noise (W)";
  table.columns = {{"series", false}, {"limits"}, {"windows"}, {"80 %"},
                   {"90 %"},          {"95 %"},   {"least J"}};
  const Result<std::vector<RecordedSeries>> all = embedded_study();
  if (!all) {
    return all.error();
  }
  const SteadyClock wall;
  ProgressLine progress(wall, std::cerr, stderr_progress_style());
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    progress.update({static_cast<double>(i), static_cast<double>(verdict.series.size()),
                     "searching " + verdict.names[i]});
    if (!verdict.series[i].advisable()) {
      table.rows.push_back({{verdict.names[i], Emphasis::struck},
                            {"dead: not run", Emphasis::bad},
                            {"-"},
                            {"-"},
                            {"-"},
                            {"-"},
                            {"-"}});
      continue;
    }
    Result<std::vector<Measurement>> measured = play((*all)[i]);
    if (!measured) {
      return measured.error();
    }
    Series series;
    series.labels = verdict.series[i].series.labels;
    series.knob = power_limit_knob(kStep);
    series.provenance = Provenance::simulated;
    series.limits = (*all)[i].card.limits;
    series.measurements = std::move(*measured);
    const Result<Verdict> found = analyze({std::move(series)}, verdict.options);
    if (!found) {
      return found.error();
    }
    table.rows.push_back(
        search_row(verdict.series[i], verdict.names[i], found->series.front()));
  }
  document.blocks.push_back(std::move(table));
  document.blocks.push_back(Paragraph{
      "The study measured 34 limits a series; a limit may be off by one step of 10 W where "
      "noise "
      "hides the difference. Power, heat and noise of the simulated card are invented.",
      Emphasis::faint});
  return {};
}

Result<Document> study_document(const Verdict& verdict) {
  const Result<std::vector<Claim>> claims =
      import_claims(embedded_study_claims(), "rtx3090_vit_b16.claims.csv");
  if (!claims) {
    return claims.error();
  }
  Document document = verdict_document(verdict, "the recorded RTX 3090 study of ViT-B/16");
  Document extra;
  add_claims(extra, verdict, *claims);
  if (const Result<void> done = add_search(extra, verdict); !done) {
    return done.error();
  }
  // Behind the tables of the verdict, before its first chart.
  const auto first_chart =
      std::find_if(document.blocks.begin(), document.blocks.end(),
                   [](const Block& block) { return std::holds_alternative<Chart>(block); });
  document.blocks.insert(first_chart, extra.blocks.begin(), extra.blocks.end());
  return document;
}

Result<void> run(const Invocation& invocation) {
  if (const Result<void> fine = check_output(invocation); !fine) {
    return fine.error();
  }
  Result<Imported> imported = import_embedded_study();
  if (!imported) {
    return imported.error();
  }
  const Result<Verdict> verdict = analyze(std::move(imported->series), AnalysisOptions{});
  if (!verdict) {
    return verdict.error();
  }
  const Result<Document> document = study_document(*verdict);
  if (!document) {
    return document.error();
  }
  if (const Result<void> shown = show(invocation, *verdict, *document); !shown) {
    return shown.error();
  }
  if (invocation.get("--format").value_or("text") != "text") {
    return {};
  }
  return print("\n" + overview(look_at_machine(), invocation.program()));
}

}  // namespace

Command study_command() {
  Command command;
  command.name = "study";
  command.summary = "the recorded RTX 3090 study, from figures to verdict";
  command.description =
      "Works out, from a real recorded study that is part of the program, which power limits "
      "keep 80, 90 and 95 % of the speed, which costs the least energy, which rows cannot be "
      "trusted and where the published article disagrees with its own data; then plays the "
      "study "
      "back on a simulated card and shows how few limits the search needs. Writes to no "
      "device.";
  command.options = output_options();
  command.examples = {{"halfwatt study --report study.html", "tables here, charts on a page"}};
  command.run = run;
  return command;
}

}  // namespace halfwatt

#include "tune/verdict_document.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt {
namespace {

Emphasis emphasis(const SeriesVerdict& verdict) {
  return verdict.advisable() ? Emphasis::plain : Emphasis::struck;
}

// "350", "350?" where it is not resolvable.
Cell limit_cell(const SeriesVerdict& verdict, const KeepVerdict& keep) {
  if (!keep.limit) {
    return {"-", Emphasis::faint};
  }
  const std::string text = number_text(*keep.limit) + (keep.resolvable ? "" : "?");
  if (!verdict.advisable()) {
    return {text, Emphasis::struck};
  }
  return {text, keep.resolvable ? Emphasis::good : Emphasis::plain};
}

std::string knob_unit(const Verdict& verdict) {
  const std::string& first = verdict.series.front().series.knob.unit;
  const bool same =
      std::all_of(verdict.series.begin(), verdict.series.end(),
                  [&](const SeriesVerdict& each) { return each.series.knob.unit == first; });
  return same ? first : "";
}

std::string in_unit(const std::string& title, const std::string& unit) {
  return unit.empty() ? title : title + " " + unit;
}

Table limits_table(const Verdict& verdict) {
  const std::string unit = knob_unit(verdict);
  Table table;
  table.caption = fmt::format(
      "The lowest limit{} that keeps a share of the speed at the {} limit{}",
      unit.empty() ? "" : fmt::format(" ({})", unit),
      verdict.options.reference == Reference::top      ? "highest"
      : verdict.options.reference == Reference::preset ? "preset"
                                                       : "fastest",
      verdict.options.relative_to.empty() ? "" : " of " + verdict.options.relative_to);
  table.columns = {{"series", false}};
  for (const double percent : verdict.options.keep_percent) {
    table.columns.push_back({fmt::format("{:g} %", percent)});
  }
  table.columns.push_back({in_unit("least J", unit)});
  table.columns.push_back({"J/item"});
  table.columns.push_back({"items/s"});
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    std::vector<Cell> row = {{verdict.names[i], emphasis(each)}};
    for (std::size_t k = 0; k < verdict.options.keep_percent.size(); ++k) {
      row.push_back(k < each.keep.size() ? limit_cell(each, each.keep[k])
                                         : Cell{"-", Emphasis::faint});
    }
    if (each.least) {
      const bool estimate = each.least->basis == EnergyBasis::limit_times_time;
      row.push_back({number_text(each.least->limit), emphasis(each)});
      row.push_back({fmt::format("{}{:.4g}", estimate ? "~" : "", each.least->joules_per_item),
                     emphasis(each)});
    } else {
      row.push_back({"unknown", Emphasis::faint});
      row.push_back({"unknown", Emphasis::faint});
    }
    row.push_back(
        each.curve.empty()
            ? Cell{"unknown", Emphasis::faint}
            : Cell{fmt::format("{:.4g}", each.curve.points[each.peak].items_per_second),
                   emphasis(each)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table card_table(const Verdict& verdict) {
  Table table;
  table.caption = "One limit for all workloads of a card";
  table.columns = {
      {"card", false}, {"share"}, {"limit W"}, {"the series that needs it", false}};
  for (const CardVerdict& card : verdict.card) {
    table.rows.push_back({{card.device},
                          {fmt::format("{:g} %", card.percent)},
                          card.limit
                              ? Cell{number_text(*card.limit) + (card.resolvable ? "" : "?"),
                                     card.resolvable ? Emphasis::good : Emphasis::plain}
                              : Cell{"none", Emphasis::bad},
                          {card.binding_series}});
  }
  return table;
}

Table shares_table(const Verdict& verdict) {
  Table table;
  table.caption =
      "Every share: first measured limit, interpolated crossing, and what holds the "
      "crossing: a 95 % interval where windows were repeated, else the limits around it";
  table.columns = {{"series", false}, {"share"}, {"limit"}, {"crossing"},
                   {"from"},          {"to"},    {"kept"},  {"resolvable", false}};
  table.details = true;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    for (const KeepVerdict& keep : verdict.series[i].keep) {
      const auto number = [](const std::optional<double>& value) {
        return Cell{value ? fmt::format("{:.1f}", *value) : "-"};
      };
      table.rows.push_back(
          {{verdict.names[i], emphasis(verdict.series[i])},
           {fmt::format("{:g} %", keep.percent)},
           limit_cell(verdict.series[i], keep),
           number(keep.interpolated),
           number(keep.interval ? std::optional(keep.interval->first) : std::nullopt),
           number(keep.interval ? std::optional(keep.interval->second) : std::nullopt),
           {keep.limit ? fmt::format("{:.2f} %", keep.reached_percent) : "-"},
           {keep.resolvable ? "yes" : "no"}});
    }
  }
  return table;
}

Table raw_table(const Verdict& verdict) {
  Table table;
  table.caption = "Raw rows: every window as it was measured or read";
  table.columns = {{"series", false}, {"setting", false}, {"step s"}, {"items/s"},
                   {"J/item"},        {"steps"},          {"C"},      {"state", false},
                   {"notes", false}};
  table.details = true;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    for (const Measurement& measured : verdict.series[i].series.measurements) {
      const auto joules = measured.joules_per_item();
      const auto& heat = measured.conditions.temperature_end;
      std::string notes;
      for (const WindowNote note : measured.notes) {
        notes += (notes.empty() ? "" : ", ") + std::string(word(note));
      }
      const bool progress = measured.work.step_time > Seconds(0);
      const Emphasis how = measured.counts() ? Emphasis::plain : Emphasis::struck;
      table.rows.push_back(
          {{verdict.names[i], how},
           {text(measured.setting), how},
           {progress ? fmt::format("{:.6g}", measured.work.step_time.value()) : "none", how},
           {progress ? fmt::format("{:.5g}", measured.work.items_per_second()) : "none", how},
           {joules ? fmt::format("{:.5g}", joules->value()) : "unknown", how},
           {fmt::format("{:.4g}", measured.work.steps), how},
           {heat ? fmt::format("{:.0f}", heat->value()) : "unknown", how},
           {std::string(text(measured.numerical_state)), how},
           {notes, how}});
    }
  }
  return table;
}

void add_legend(Document& document, const Verdict& verdict) {
  const auto any = [&verdict](auto condition) {
    return std::any_of(verdict.series.begin(), verdict.series.end(), condition);
  };
  std::string legend;
  if (any([](const SeriesVerdict& each) {
        return each.least && each.least->basis == EnergyBasis::limit_times_time;
      })) {
    legend +=
        "~ is limit x time: an estimate, an upper bound only where the card honours the "
        "cap. ";
  }
  if (any([](const SeriesVerdict& each) {
        return std::any_of(each.keep.begin(), each.keep.end(), [](const KeepVerdict& keep) {
          return keep.limit && !keep.resolvable;
        });
      })) {
    legend += "? is not resolvable: the figures allow more than one answer. ";
  }
  if (!legend.empty()) {
    document.blocks.push_back(Paragraph{legend, Emphasis::faint});
  }
}

// The first notes where everybody sees them, and all of them in a table that folds.
void add_notes_block(Document& document, const Verdict& verdict) {
  constexpr std::size_t kShown = 24;
  Table all;
  all.caption = "All notes";
  all.columns = {{"series", false}, {"note", false}};
  all.details = true;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    const bool advisable = verdict.series[i].advisable();
    for (const std::string& note : verdict.series[i].notes) {
      if (all.rows.empty()) {
        document.blocks.push_back(Heading{"Notes"});
      }
      if (all.rows.size() < kShown) {
        document.blocks.push_back(Note{verdict.names[i] + ": " + note, !advisable});
      }
      all.rows.push_back({{verdict.names[i], emphasis(verdict.series[i])}, {note}});
    }
  }
  if (all.rows.size() > kShown) {
    document.blocks.push_back(
        Note{fmt::format("{} more notes: --report FILE.html and --format json have them all",
                         all.rows.size() - kShown)});
    document.blocks.push_back(std::move(all));
  }
}

}  // namespace

Document verdict_document(const Verdict& verdict, const std::string& title) {
  Document document;
  document.title = headline(verdict);
  document.provenance = text(verdict.provenance);
  document.blocks.push_back(
      Paragraph{fmt::format("{}: {}{} series; figures are {}.", title,
                            verdict.common.empty() ? "" : verdict.common + "; ",
                            verdict.series.size(), text(verdict.provenance)),
                Emphasis::faint});
  document.blocks.push_back(limits_table(verdict));
  add_legend(document, verdict);
  if (!verdict.card.empty()) {
    document.blocks.push_back(card_table(verdict));
  }
  for (Chart& chart : verdict_charts(verdict)) {
    document.blocks.push_back(std::move(chart));
  }
  add_notes_block(document, verdict);
  document.blocks.push_back(shares_table(verdict));
  document.blocks.push_back(raw_table(verdict));
  return document;
}

}  // namespace halfwatt

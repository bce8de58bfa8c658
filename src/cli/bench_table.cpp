#include "cli/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/passes/precision.h"
#include "engine/tensor/dtype.h"
#include "workloads/product_task.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;
using Figure = std::optional<double>;

constexpr double kMilli = 1e3;
constexpr double kMebi = 1.0 / (1024 * 1024);
constexpr double kGiga = 1e-9;
constexpr double kTera = 1e-12;

template <class Unit>
Figure in(const std::optional<Quantity<Unit>>& value, double scale) {
  return value ? Figure(value->value() * scale) : std::nullopt;
}

Figure flops(const Measurement& row) {
  return row.predicted ? row.predicted->flops : std::nullopt;
}

/// One column: what scripts call it, what people read, and where it comes from.
struct FigureColumn {
  std::string_view key;
  std::string_view title;
  bool is_measured;  ///< not valid in a row that does not count
  int digits;        ///< behind the point, for people
  Figure (*of)(const Measurement& row);
};

constexpr std::array kColumns = {
    FigureColumn{
        "step_ms", "step ms", true, 3,
        [](const Measurement& row) { return Figure(row.work.step_time.value() * kMilli); }},
    FigureColumn{"step_p05_ms", "p05", true, 3,
                 [](const Measurement& row) { return in(row.work.step_time_p05, kMilli); }},
    FigureColumn{"step_p95_ms", "p95", true, 3,
                 [](const Measurement& row) { return in(row.work.step_time_p95, kMilli); }},
    FigureColumn{"step_low_ms", "low", true, 3,
                 [](const Measurement& row) { return in(row.work.step_time_low, kMilli); }},
    FigureColumn{"step_high_ms", "high", true, 3,
                 [](const Measurement& row) { return in(row.work.step_time_high, kMilli); }},
    FigureColumn{"items_per_second", "{}/s", true, 2,
                 [](const Measurement& row) { return Figure(row.work.items_per_second()); }},
    FigureColumn{"watts", "W", true, 1,
                 [](const Measurement& row) {
                   return row.energy.value
                              ? Figure((*row.energy.value / row.work.duration).value())
                              : std::nullopt;
                 }},
    FigureColumn{"joules_per_item", "J/{}", true, 3,
                 [](const Measurement& row) { return in(row.joules_per_item(), 1); }},
    FigureColumn{"teraflops", "TFLOP/s", true, 4,
                 [](const Measurement& row) {
                   const Figure all = flops(row);
                   return all ? Figure(*all / row.work.step_time.value() * kTera)
                              : std::nullopt;
                 }},
    FigureColumn{"predicted_ms", "predicted", false, 3,
                 [](const Measurement& row) {
                   return row.predicted ? in(row.predicted->step_time, kMilli) : std::nullopt;
                 }},
    FigureColumn{"gigaflops_per_step", "GFLOP", false, 3,
                 [](const Measurement& row) {
                   const Figure all = flops(row);
                   return all ? Figure(*all * kGiga) : std::nullopt;
                 }},
    FigureColumn{"plan_mib", "plan MiB", false, 1,
                 [](const Measurement& row) {
                   return row.predicted ? in(row.predicted->memory, kMebi) : std::nullopt;
                 }},
    FigureColumn{
        "resident_mib", "RSS MiB", false, 1,
        [](const Measurement& row) { return in(row.conditions.resident_peak, kMebi); }},
};

bool has_figures(const Measurement& row) {
  return row.work.steps > 0 && row.work.step_time.value() > 0 &&
         row.numerical_state != NumericalState::dead &&
         row.numerical_state != NumericalState::stalled;
}

Figure figure(const FigureColumn& column, const Measurement& row) {
  return column.is_measured && !has_figures(row) ? std::nullopt : column.of(row);
}

Cell cell(const FigureColumn& column, const Measurement& row) {
  if (column.is_measured && !has_figures(row)) {
    return {"void", Emphasis::bad};
  }
  const Figure value = column.of(row);
  if (!value) {
    return {"unknown", Emphasis::faint};
  }
  return {fmt::format("{:.{}f}", *value, column.digits),
          column.is_measured && !row.counts() ? Emphasis::struck : Emphasis::plain};
}

std::string_view emulated(const Measurement& row) {
  return !row.predicted ? "unknown" : row.predicted->emulated ? "yes" : "no";
}

std::string notes_of(const Measurement& row) {
  std::string all;
  for (const WindowNote note : row.notes) {
    all += (all.empty() ? "" : " ") + std::string(word(note));
  }
  return all;
}

std::string knob_of(const Measurement& row, const std::string& knob) {
  for (const auto& [name, value] : row.setting.values()) {
    if (name == knob) {
      return text(value);
    }
  }
  return "";
}

Json knobs_of(const Setting& setting) {
  Json all = Json::object();
  for (const auto& [name, value] : setting.values()) {
    std::visit([&all, &key = name](const auto& held) { all[key] = held; }, value);
  }
  return all;
}

std::string unit_of(const std::vector<Measurement>& rows) {
  return rows.empty() ? "item" : rows.front().work.unit;
}

}  // namespace

std::string text(const LeftOut& left_out) {
  std::string all;
  for (const auto& [knob, value] : left_out.setting.values()) {
    all += (all.empty() ? "" : ", ") + text(value);
  }
  return all + ": " + left_out.reason;
}

std::vector<Measurement> bench_rows(const std::vector<Measurement>& measured) {
  std::vector<Measurement> rows;
  for (const Measurement& each : measured) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Measurement& row) {
      return row.setting == each.setting;
    });
    if (same == rows.end()) {
      rows.push_back(each);
    } else {
      *same = each;
    }
  }
  return rows;
}

Document bench_document(const RecordHeader& header,
                        const std::vector<Measurement>& rows,
                        const std::vector<LeftOut>& left_out) {
  Table table;
  for (const Knob& knob : header.knobs) {
    table.columns.push_back({knob.name, knob.name != "precision"});
  }
  const std::string unit = unit_of(rows);
  for (const FigureColumn& column : kColumns) {
    table.columns.push_back({fmt::format(fmt::runtime(column.title), unit)});
  }
  table.columns.insert(table.columns.end(),
                       {{"numbers", false}, {"emulated", false}, {"notes", false}});
  Notes seen;
  for (const Measurement& row : rows) {
    std::vector<Cell> cells;
    for (const Knob& knob : header.knobs) {
      cells.push_back({knob_of(row, knob.name)});
    }
    for (const FigureColumn& column : kColumns) {
      cells.push_back(cell(column, row));
    }
    cells.push_back(
        {std::string(text(row.numerical_state)),
         row.numerical_state == NumericalState::live ? Emphasis::plain : Emphasis::bad});
    cells.push_back({std::string(emulated(row))});
    cells.push_back({notes_of(row)});
    table.rows.push_back(std::move(cells));
    for (const WindowNote note : row.notes) {
      if (std::find(seen.begin(), seen.end(), note) == seen.end()) {
        seen.push_back(note);
      }
    }
  }
  Document document{fmt::format("{} on {}", header.workload, header.device),
                    std::string(text(header.provenance)),
                    {std::move(table)}};
  document.blocks.push_back(Paragraph{
      "step: median of the window; low and high: its 95 % interval; plan: bytes of the plan; "
      "RSS: the most the process held; GFLOP: products of a step"});
  for (const WindowNote note : seen) {
    document.blocks.push_back(
        Note{fmt::format("{}: {}", word(note), sentence(note)), invalidates(note)});
  }
  for (const LeftOut& each : left_out) {
    document.blocks.push_back(Note{"left out: " + text(each), false});
  }
  return document;
}

std::vector<std::string> narrow_losses(const std::vector<Measurement>& rows) {
  const auto is_narrow = [](const Measurement& row) {
    const auto precision = precision_named(knob_of(row, "precision"));
    return precision && facts(precision->compute).bytes < facts(DType::f32).bytes;
  };
  std::vector<std::string> all;
  for (const Measurement& row : rows) {
    const std::string shape = knob_of(row, shape_knob().name);
    if (shape.empty() || !row.counts() || !is_narrow(row)) {
      continue;
    }
    const Measurement* wide = nullptr;
    for (const Measurement& other : rows) {
      const bool fits =
          knob_of(other, shape_knob().name) == shape && other.counts() && !is_narrow(other);
      if (fits && (wide == nullptr || other.work.step_time < wide->work.step_time)) {
        wide = &other;
      }
    }
    if (wide != nullptr && !(row.work.step_time < wide->work.step_time)) {
      all.push_back(fmt::format("{}: {} is no faster than {} ({:.4g} and {:.4g} ms)", shape,
                                knob_of(row, "precision"), knob_of(*wide, "precision"),
                                row.work.step_time.value() * kMilli,
                                wide->work.step_time.value() * kMilli));
    }
  }
  return all;
}

std::string bench_csv(const RecordHeader& header, const std::vector<Measurement>& rows) {
  std::string out = "workload";
  for (const Knob& knob : header.knobs) {
    out += "," + knob.name;
  }
  for (const FigureColumn& column : kColumns) {
    out += fmt::format(",{}", column.key);
  }
  out += ",counts,numerical_state,emulated,notes\n";
  for (const Measurement& row : rows) {
    out += header.workload;
    for (const Knob& knob : header.knobs) {
      const std::string value = knob_of(row, knob.name);
      const bool quoted = value.find(',') != std::string::npos;
      out += quoted ? fmt::format(",\"{}\"", value) : "," + value;
    }
    for (const FigureColumn& column : kColumns) {
      const Figure value = figure(column, row);
      out += value ? fmt::format(",{}", *value) : ",";
    }
    out += fmt::format(",{},{},{},{}\n", row.counts() ? "yes" : "no", text(row.numerical_state),
                       emulated(row), notes_of(row));
  }
  return out;
}

std::string bench_json(const RecordHeader& header,
                       const std::vector<Measurement>& rows,
                       const std::vector<LeftOut>& left_out) {
  Json json = {{"schema", "halfwatt.bench/1"}, {"workload", header.workload},
               {"device", header.device},      {"provenance", text(header.provenance)},
               {"labels", Json::object()},     {"unit", unit_of(rows)},
               {"rows", Json::array()},        {"left_out", Json::array()}};
  for (const auto& [name, value] : header.labels) {
    json["labels"][name] = value;
  }
  for (const Measurement& row : rows) {
    Json one = knobs_of(row.setting);
    for (const FigureColumn& column : kColumns) {
      const Figure value = figure(column, row);
      one[std::string(column.key)] = value ? Json(*value) : Json(nullptr);
    }
    one["counts"] = row.counts();
    one["numerical_state"] = text(row.numerical_state);
    one["emulated"] = row.predicted ? Json(row.predicted->emulated) : Json(nullptr);
    one["notes"] = Json::array();
    for (const WindowNote note : row.notes) {
      one["notes"].push_back(word(note));
    }
    json["rows"].push_back(std::move(one));
  }
  for (const LeftOut& each : left_out) {
    Json one = knobs_of(each.setting);
    one["reason"] = each.reason;
    json["left_out"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace halfwatt

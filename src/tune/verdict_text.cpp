#include "tune/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string key(const char* name, const Knob& knob) {
  std::string unit = knob.unit;
  std::transform(unit.begin(), unit.end(), unit.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return unit.empty() ? name : fmt::format("{}_{}", name, unit);
}

Json to_json(const Labels& labels) {
  Json json = Json::object();
  for (const auto& [name, value] : labels) {
    json[name] = value;
  }
  return json;
}

Json to_json(const KeepVerdict& keep, const Knob& knob) {
  Json json = {{"percent", keep.percent},
               {key("limit", knob), or_null(keep.limit)},
               {key("interpolated", knob), or_null(keep.interpolated)}};
  json[key("interval", knob)] =
      keep.interval ? Json{keep.interval->first, keep.interval->second} : Json();
  json["reached_percent"] = keep.limit ? Json(keep.reached_percent) : Json();
  json["resolvable"] = keep.resolvable;
  if (keep.lower_limit) {
    json[key("lower_limit", knob)] = *keep.lower_limit;
  }
  return json;
}

// The largest that a window which counts is said to be off.
void put_energy_errors(Json& json, const Series& series) {
  std::optional<double> shared;
  std::optional<double> own;
  for (const Measurement& each : series.measurements) {
    if (each.counts()) {
      shared = std::max(shared, each.energy.relative_error);  // what is absent is the least
      own = std::max(own, each.energy.window_error);
    }
  }
  if (shared) {
    json["relative_error"] = *shared;
  }
  if (own) {
    json["window_error"] = *own;
  }
}

Json to_json(const SeriesVerdict& verdict) {
  const Knob& knob = verdict.series.knob;
  const Curve& curve = verdict.curve;
  Json json = {{"labels", to_json(verdict.series.labels)},
               {"device", verdict.series.device},
               {"provenance", text(verdict.series.provenance)},
               {"knob", knob.name},
               {"unit", verdict.unit()},
               {"points", curve.points.size()},
               {"windows", curve.windows},
               {"rejected_windows", curve.rejected}};
  json["window_noise"] = or_null(curve.noise);
  json[key("reference", knob)] = curve.empty() ? Json() : Json(curve.points[curve.reference].x);
  json["peak"] = Json();
  if (!curve.empty()) {
    json["peak"] = {{key("limit", knob), curve.points[verdict.peak].x},
                    {"items_per_s", curve.points[verdict.peak].items_per_second}};
  }
  json["keep"] = Json::array();
  for (const KeepVerdict& keep : verdict.keep) {
    json["keep"].push_back(to_json(keep, knob));
  }
  json["least_energy"] = Json();
  if (verdict.least) {
    json["least_energy"] = {
        {key("limit", knob), verdict.least->limit},
        {"joules_per_item", verdict.least->joules_per_item},
        {"basis", text(verdict.least->basis)},
        {key("flat", knob), {verdict.least->flat.first, verdict.least->flat.second}}};
    put_energy_errors(json["least_energy"], verdict.series);
    json["least_energy_delay"] = {{key("limit", knob), verdict.least->energy_delay_limit}};
  }
  json["knee"] = {{key("limit", knob), or_null(verdict.knee)}};
  json["plateau"] = Json();
  if (verdict.plateau) {
    json["plateau"] = {{key("from", knob), verdict.plateau->from},
                       {key("to", knob), verdict.plateau->to}};
  }
  json["numerical_state"] = text(verdict.state);
  json["notes"] = verdict.notes;
  return json;
}

Json device_json(const Verdict& verdict) {
  const Series& first = verdict.series.front().series;
  const bool same = std::all_of(
      verdict.series.begin(), verdict.series.end(),
      [&](const SeriesVerdict& each) { return each.series.device == first.device; });
  if (!same) {
    return {};
  }
  Json json = {{"name", first.device}};
  if (first.limits) {
    json["min_w"] = first.limits->min.value();
    json["max_w"] = first.limits->max.value();
    json["preset_w"] = first.limits->preset ? Json(first.limits->preset->value()) : Json();
  }
  return json;
}

Json pareto_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const ParetoGroup& group : verdict.pareto) {
    Json front = Json::array();
    for (const ParetoPoint& point : group.front) {
      const SeriesVerdict& series = verdict.series[point.series];
      front.push_back({{"series", verdict.names[point.series]},
                       {key("limit", series.series.knob), series.curve.points[point.point].x},
                       {"items_per_s", point.items_per_second},
                       {"joules_per_item", point.joules_per_item}});
    }
    Json members = Json::array();
    for (const std::size_t each : group.series) {
      members.push_back(verdict.names[each]);
    }
    list.push_back({{"series", members}, {"basis", text(group.basis)}, {"front", front}});
  }
  return list;
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string inside;
  for (const char c : cell) {
    inside += c == '"' ? "\"\"" : std::string(1, c);
  }
  return '"' + inside + '"';
}

std::string cell(const std::optional<double>& value) {
  return value ? number_text(*value) : "";
}

std::string csv_row(const SeriesVerdict& verdict,
                    const std::string& name,
                    const KeepVerdict& keep) {
  const auto of = [](const auto& whole, auto part) {
    return whole ? number_text(part(*whole)) : std::string();
  };
  const Curve& curve = verdict.curve;
  const std::string cells[] = {
      quoted(name),
      quoted(verdict.series.device),
      std::string(text(verdict.series.provenance)),
      quoted(verdict.series.knob.name),
      quoted(verdict.series.knob.unit),
      number_text(keep.percent),
      cell(keep.limit),
      cell(keep.interpolated),
      of(keep.interval, [](const auto& interval) { return interval.first; }),
      of(keep.interval, [](const auto& interval) { return interval.second; }),
      keep.limit ? number_text(keep.reached_percent) : "",
      keep.resolvable ? "true" : "false",
      curve.empty() ? "" : number_text(curve.points[curve.reference].x),
      of(verdict.least, [](const LeastEnergy& least) { return least.limit; }),
      of(verdict.least, [](const LeastEnergy& least) { return least.joules_per_item; }),
      verdict.least ? std::string(text(verdict.least->basis)) : "",
      std::string(text(verdict.state))};
  return fmt::format("{}\n", fmt::join(cells, ","));
}

}  // namespace

std::string verdict_json(const Verdict& verdict) {
  Json json = {{"schema", "halfwatt.verdict/1"},
               {"headline", headline(verdict)},
               {"device", device_json(verdict)},
               {"provenance", text(verdict.provenance)}};
  json["series"] = Json::array();
  for (const SeriesVerdict& each : verdict.series) {
    json["series"].push_back(to_json(each));
  }
  json["card"] = Json::array();
  for (const CardVerdict& card : verdict.card) {
    json["card"].push_back({{"device", card.device},
                            {"percent", card.percent},
                            {"limit_w", or_null(card.limit)},
                            {"binding_series", card.binding_series},
                            {"resolvable", card.resolvable}});
  }
  json["pareto"] = pareto_json(verdict);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string verdict_csv(const Verdict& verdict) {
  std::string csv =
      "series,device,provenance,knob,unit,percent,limit,interpolated,interval_low,interval_"
      "high,"
      "reached_percent,resolvable,reference,least_energy_limit,joules_per_item,energy_basis,"
      "numerical_state\n";
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    const SeriesVerdict& each = verdict.series[i];
    for (std::size_t share = 0; share < verdict.options.keep_percent.size(); ++share) {
      KeepVerdict none;
      none.percent = verdict.options.keep_percent[share];
      csv +=
          csv_row(each, verdict.names[i], share < each.keep.size() ? each.keep[share] : none);
    }
  }
  return csv;
}

}  // namespace halfwatt

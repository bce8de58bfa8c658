#include "measure/record_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHeaderSchema = "halfwatt.record/1";
constexpr std::string_view kMeasurementSchema = "halfwatt.measurement/1";

template <class Unit>
void put(Json& json, const char* key, const std::optional<Quantity<Unit>>& value) {
  if (value) {
    json[key] = value->value();
  }
}

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) {
    json[key] = *value;
  }
}

Json to_json(const Setting& setting) {
  Json json = Json::object();
  for (const auto& [name, value] : setting.values()) {
    std::visit([&json, &key = name](const auto& held) { json[key] = held; }, value);
  }
  return json;
}

Json to_json(const Work& work) {
  Json json = {{"steps", work.steps},
               {"duration_s", work.duration.value()},
               {"step_s", work.step_time.value()},
               {"items_per_step", work.items_per_step},
               {"unit", work.unit}};
  put(json, "step_low_s", work.step_time_low);
  put(json, "step_high_s", work.step_time_high);
  put(json, "step_p05_s", work.step_time_p05);
  put(json, "step_p95_s", work.step_time_p95);
  return json;
}

Json to_json(const Energy& energy) {
  Json json = {{"method", text(energy.method)}};
  put(json, "joules", energy.value);
  put(json, "relative_error", energy.relative_error);
  put(json, "window_error", energy.window_error);
  return json;
}

Json to_json(const Conditions& conditions) {
  Json json = Json::object();
  put(json, "requested_limit_w", conditions.requested_limit);
  put(json, "enforced_limit_w", conditions.enforced_limit);
  put(json, "sm_clock_mhz", conditions.sm_clock);
  put(json, "memory_clock_mhz", conditions.memory_clock);
  put(json, "temperature_start_c", conditions.temperature_start);
  put(json, "temperature_end_c", conditions.temperature_end);
  put(json, "fan_percent", conditions.fan_percent);
  put(json, "memory_used_b", conditions.memory_used);
  put(json, "resident_peak_b", conditions.resident_peak);
  put(json, "power_capped_share", conditions.power_capped_share);
  put(json, "throttled_share", conditions.throttled_share);
  return json;
}

Json to_json(const Prediction& predicted) {
  Json json = Json::object();
  put(json, "memory_b", predicted.memory);
  put(json, "step_s", predicted.step_time);
  put(json, "flops", predicted.flops);
  json["emulated"] = predicted.emulated;
  return json;
}

// A value from a file for a message.
std::string shown(const Json& json) {
  if (json.is_structured()) {
    return json.is_array() ? "a list" : "an object";
  }
  constexpr std::size_t kEnough = 40;
  std::string dumped = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return dumped.size() > kEnough ? dumped.substr(0, kEnough) + "..." : dumped;
}

// Reads fields of one object and remembers the first thing that is wrong.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool failed() const { return !problem_.empty(); }
  Error error() const { return bad_input(problem_); }

  const Json* find(const char* key, bool required) {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    if (found != json_.end()) {
      return &*found;
    }
    if (required) {
      fail(key, "is missing");
    }
    return nullptr;
  }

  std::optional<double> number(const char* key, bool required, double at_least) {
    const Json* found = find(key, required);
    if (found == nullptr) {
      return std::nullopt;
    }
    const double value = found->is_number() ? found->get<double>() : std::nan("");
    if (!std::isfinite(value) || value < at_least) {
      fail(key,
           fmt::format("is {}; needed a number of at least {:g}", shown(*found), at_least));
      return std::nullopt;
    }
    return value;
  }

  double need(const char* key, double at_least) {
    return number(key, true, at_least).value_or(at_least);
  }

  template <class Unit>
  void take(const char* key, std::optional<Quantity<Unit>>& into, double at_least) {
    if (const auto value = number(key, false, at_least)) {
      into = Quantity<Unit>(*value);
    }
  }

  bool flag(const char* key) {
    const Json* found = find(key, true);
    if (found == nullptr || !found->is_boolean()) {
      fail(key, "is neither true nor false");
      return false;
    }
    return found->get<bool>();
  }

  std::string word(const char* key, bool required) {
    const Json* found = find(key, required);
    if (found == nullptr) {
      return {};
    }
    if (!found->is_string()) {
      fail(key, fmt::format("is {}; needed a text", shown(*found)));
      return {};
    }
    return found->get<std::string>();
  }

  std::vector<std::string> words(const char* key) {
    std::vector<std::string> list;
    const Json* found = find(key, false);
    if (found == nullptr) {
      return list;
    }
    if (!found->is_array()) {
      fail(key, "is no list");
      return list;
    }
    for (const Json& each : *found) {
      if (!each.is_string()) {
        fail(key, fmt::format("holds {}; needed texts", shown(each)));
        return list;
      }
      list.push_back(each.get<std::string>());
    }
    return list;
  }

  // The object under `key`; an empty one if it is missing or none.
  Fields inside(const char* key, bool required) {
    static const Json nothing = Json::object();
    const Json* found = find(key, required);
    if (found != nullptr && !found->is_object()) {
      fail(key, fmt::format("is {}; needed an object", shown(*found)));
      found = nullptr;
    }
    return Fields(found != nullptr ? *found : nothing, where_ + ": " + key);
  }

  void adopt(const Fields& inner) {
    if (!failed()) {
      problem_ = inner.problem_;
    }
  }

  void fail(std::string_view key, const std::string& what) {
    if (!failed()) {
      problem_ = fmt::format("{}: field {} {}", where_, key, what);
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::string problem_;
};

Setting read_setting(Fields& fields) {
  Setting setting;
  const Json* found = fields.find("setting", true);
  if (found == nullptr || !found->is_object()) {
    fields.fail("setting", "is no object");
    return setting;
  }
  for (const auto& [name, value] : found->items()) {
    if (value.is_number() && std::isfinite(value.get<double>())) {
      setting.set(name, value.get<double>());
    } else if (value.is_string()) {
      setting.set(name, value.get<std::string>());
    } else {
      fields.fail("setting",
                  fmt::format("holds {}, which is neither number nor text", shown(name)));
    }
  }
  return setting;
}

Work read_work(Fields& outer) {
  Fields fields = outer.inside("work", true);
  Work work;
  work.steps = fields.need("steps", 0);
  work.duration = Seconds(fields.need("duration_s", 0));
  work.step_time = Seconds(fields.need("step_s", 0));
  work.items_per_step = fields.need("items_per_step", 0);
  work.unit = fields.word("unit", true);
  fields.take("step_low_s", work.step_time_low, 0);
  fields.take("step_high_s", work.step_time_high, 0);
  fields.take("step_p05_s", work.step_time_p05, 0);
  fields.take("step_p95_s", work.step_time_p95, 0);
  outer.adopt(fields);
  return work;
}

Energy read_energy(Fields& outer) {
  Fields fields = outer.inside("energy", true);
  Energy energy;
  fields.take("joules", energy.value, 0);
  energy.relative_error = fields.number("relative_error", false, 0);
  energy.window_error = fields.number("window_error", false, 0);
  const std::string method = fields.word("method", true);
  if (const auto known = energy_method(method)) {
    energy.method = *known;
  } else {
    fields.fail("method", fmt::format("is {}; not an energy method", shown(method)));
  }
  outer.adopt(fields);
  return energy;
}

Conditions read_conditions(Fields& outer) {
  constexpr double kAbsoluteZero = -273.15;
  Fields fields = outer.inside("conditions", true);
  Conditions conditions;
  fields.take("requested_limit_w", conditions.requested_limit, 0);
  fields.take("enforced_limit_w", conditions.enforced_limit, 0);
  fields.take("sm_clock_mhz", conditions.sm_clock, 0);
  fields.take("memory_clock_mhz", conditions.memory_clock, 0);
  fields.take("temperature_start_c", conditions.temperature_start, kAbsoluteZero);
  fields.take("temperature_end_c", conditions.temperature_end, kAbsoluteZero);
  fields.take("memory_used_b", conditions.memory_used, 0);
  fields.take("resident_peak_b", conditions.resident_peak, 0);
  conditions.fan_percent = fields.number("fan_percent", false, 0);
  conditions.power_capped_share = fields.number("power_capped_share", false, 0);
  conditions.throttled_share = fields.number("throttled_share", false, 0);
  outer.adopt(fields);
  return conditions;
}

std::optional<Prediction> read_prediction(Fields& outer) {
  if (outer.find("predicted", false) == nullptr) {
    return std::nullopt;
  }
  Fields fields = outer.inside("predicted", false);
  Prediction predicted;
  fields.take("memory_b", predicted.memory, 0);
  fields.take("step_s", predicted.step_time, 0);
  predicted.flops = fields.number("flops", false, 0);
  predicted.emulated = fields.flag("emulated");
  outer.adopt(fields);
  return predicted;
}

Notes read_notes(Fields& fields) {
  Notes notes;
  for (const std::string& each : fields.words("notes")) {
    if (const auto known = note(each)) {
      notes.push_back(*known);
    } else {
      fields.fail("notes",
                  fmt::format("holds {}, which this version does not know", shown(each)));
    }
  }
  return notes;
}

std::optional<LimitRange> read_limits(Fields& outer) {
  if (outer.find("limits", false) == nullptr) {
    return std::nullopt;
  }
  Fields fields = outer.inside("limits", false);
  LimitRange limits{Watts(fields.need("min_w", 0)), Watts(fields.need("max_w", 0)), {}};
  fields.take("preset_w", limits.preset, 0);
  if (limits.max < limits.min) {
    fields.fail("max_w", "is below min_w");
  }
  outer.adopt(fields);
  return limits;
}

Labels read_labels(Fields& fields) {
  Labels labels;
  const Json* found = fields.find("labels", false);
  if (found == nullptr) {
    return labels;
  }
  if (!found->is_object()) {
    fields.fail("labels", "is no object");
    return labels;
  }
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) {
      labels.emplace_back(name, value.get<std::string>());
    } else {
      fields.fail("labels", fmt::format("holds {}, which is no text", shown(name)));
    }
  }
  return labels;
}

std::vector<Knob> read_knobs(Fields& outer) {
  std::vector<Knob> knobs;
  const Json* found = outer.find("knobs", true);
  if (found == nullptr || !found->is_array() || found->empty()) {
    outer.fail("knobs", "is no list with a knob in it");
    return knobs;
  }
  for (const Json& each : *found) {
    Fields fields(each, "knobs");
    Knob knob{fields.word("name", true), fields.word("unit", false),
              fields.number("step", false, 0)};
    if (fields.failed() || knob.name.empty() || knob.step == 0.0) {
      outer.fail("knobs", "holds a knob without a name, or with a unit or step that is none");
      return knobs;
    }
    knobs.push_back(std::move(knob));
  }
  return knobs;
}

std::vector<double> read_keep(Fields& fields) {
  std::vector<double> keep;
  const Json* found = fields.find("keep_percent", false);
  if (found == nullptr) {
    return keep;
  }
  if (!found->is_array()) {
    fields.fail("keep_percent", "is no list");
    return keep;
  }
  for (const Json& each : *found) {
    const double percent = each.is_number() ? each.get<double>() : 0;
    if (!(percent > 0 && percent <= 100)) {
      fields.fail("keep_percent", "holds something that is no share between 0 and 100");
      return keep;
    }
    keep.push_back(percent);
  }
  return keep;
}

Result<Json> parse_json(std::string_view line,
                        const std::string& where,
                        std::string_view schema) {
  // The library copies what is nested by recursion, and looks for a field among all before it.
  constexpr int kDeepest = 16;
  constexpr int kMostFields = 1000;
  int fields = 0;
  bool too_much = false;
  const auto keep = [&](int depth, Json::parse_event_t event, const Json&) {
    fields += event == Json::parse_event_t::key ? 1 : 0;
    too_much = too_much || depth > kDeepest || fields > kMostFields;
    return !too_much;
  };
  Json json = Json::parse(line, keep, false);
  if (too_much) {
    return bad_input(fmt::format("{}: over {} fields, or nested deeper than {}; no record is",
                                 where, kMostFields, kDeepest));
  }
  if (json.is_discarded() || !json.is_object()) {
    return bad_input(fmt::format("{}: not a JSON object", where));
  }
  const auto found = json.find("schema");
  if (found == json.end() || !found->is_string()) {
    return bad_input(fmt::format("{}: field schema is missing; needed {}", where, schema));
  }
  if (found->get<std::string>() != schema) {
    return bad_input(fmt::format("{}: field schema is {}; this version of halfwatt reads {}",
                                 where, shown(*found), schema));
  }
  return json;
}

// What may be left out or be zero only in a window that does not count: everything that reads
// measurements divides by it.
void check_figures(Fields& fields, const Measurement& measurement) {
  const auto is_figure = [](double value) { return std::isfinite(value) && value > 0; };
  const Work& work = measurement.work;
  if (!is_figure(work.items_per_step)) {
    fields.fail("work", "has no items in a step");
  }
  if (!measurement.counts()) {
    return;
  }
  if (!is_figure(work.steps) || !is_figure(work.items_per_second())) {
    fields.fail("work", "has no steps or no speed, and no note says why");
  }
  if (const auto joules = measurement.joules_per_item();
      joules && !std::isfinite(joules->value())) {
    fields.fail("energy", "gives no finite joules of an item");
  }
}

}  // namespace

std::string in_quotes(std::string_view text) { return shown(Json(text)); }

std::string header_line(const RecordHeader& header) {
  Json json = {{"schema", kHeaderSchema},     {"device_id", header.device_id},
               {"device", header.device},     {"provenance", text(header.provenance)},
               {"workload", header.workload}, {"command", header.command}};
  if (header.limits) {
    json["limits"] = {{"min_w", header.limits->min.value()},
                      {"max_w", header.limits->max.value()}};
    put(json["limits"], "preset_w", header.limits->preset);
  }
  json["labels"] = Json::object();
  for (const auto& [name, value] : header.labels) {
    json["labels"][name] = value;
  }
  json["knobs"] = Json::array();
  for (const Knob& knob : header.knobs) {
    Json one = {{"name", knob.name}, {"unit", knob.unit}};
    put(one, "step", knob.step);
    json["knobs"].push_back(std::move(one));
  }
  json["keep_percent"] = header.keep_percent;
  json["reference"] = header.reference;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string measurement_line(const Measurement& measurement) {
  Json json = {{"schema", kMeasurementSchema},
               {"started_s", measurement.started.value()},
               {"setting", to_json(measurement.setting)},
               {"work", to_json(measurement.work)},
               {"energy", to_json(measurement.energy)},
               {"conditions", to_json(measurement.conditions)},
               {"numerical_state", text(measurement.numerical_state)}};
  json["notes"] = Json::array();
  for (const WindowNote note : measurement.notes) {
    json["notes"].push_back(word(note));
  }
  if (measurement.predicted) {
    json["predicted"] = to_json(*measurement.predicted);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RecordHeader> parse_header_line(std::string_view line, const std::string& where) {
  const Result<Json> json = parse_json(line, where, kHeaderSchema);
  if (!json) {
    return json.error();
  }
  Fields fields(*json, where);
  RecordHeader header;
  header.device_id = fields.word("device_id", true);
  header.device = fields.word("device", true);
  header.workload = fields.word("workload", true);
  header.command = fields.words("command");
  header.limits = read_limits(fields);
  header.labels = read_labels(fields);
  header.knobs = read_knobs(fields);
  header.keep_percent = read_keep(fields);
  header.reference = fields.word("reference", true);
  const std::string origin = fields.word("provenance", true);
  if (const auto known = provenance(origin)) {
    header.provenance = *known;
  } else {
    fields.fail("provenance",
                fmt::format("is {}; needed measured, recorded or simulated", shown(origin)));
  }
  if (fields.failed()) {
    return fields.error();
  }
  return header;
}

Result<Measurement> parse_measurement_line(std::string_view line, const std::string& where) {
  const Result<Json> json = parse_json(line, where, kMeasurementSchema);
  if (!json) {
    return json.error();
  }
  Fields fields(*json, where);
  Measurement measurement;
  measurement.started = Seconds(fields.need("started_s", 0));
  measurement.setting = read_setting(fields);
  measurement.work = read_work(fields);
  measurement.energy = read_energy(fields);
  measurement.conditions = read_conditions(fields);
  measurement.notes = read_notes(fields);
  measurement.predicted = read_prediction(fields);
  const std::string state = fields.word("numerical_state", true);
  if (const auto known = numerical_state(state)) {
    measurement.numerical_state = *known;
  } else {
    fields.fail(
        "numerical_state",
        fmt::format("is {}; needed live, skipping, stalled, dead or unknown", shown(state)));
  }
  if (!fields.failed()) {
    check_figures(fields, measurement);
  }
  if (fields.failed()) {
    return fields.error();
  }
  return measurement;
}

}  // namespace halfwatt

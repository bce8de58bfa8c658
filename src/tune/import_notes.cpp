#include "tune/import_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tune/csv_bytes.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "halfwatt.notes/1";
constexpr std::size_t kQuotedBytes = 40;
// A document of notes is three levels deep; the limit keeps a hostile one off the stack.
constexpr int kMostLevels = 8;

/// Reads one document; the first fault stops it.
class NotesReader {
 public:
  explicit NotesReader(const std::string& file) : file_(one_line(file)) {}

  Result<ImportNotes> read(std::string_view text) {
    const Json document = parse(text);
    if (!fault_.empty()) {
      return bad_input(fault_);
    }
    read_document(document);
    if (!fault_.empty()) {
      return bad_input(fault_);
    }
    return std::move(notes_);
  }

 private:
  void fail(std::string_view text) {
    if (fault_.empty()) {
      fault_ = fmt::format("{}: {}", file_, text);
    }
  }

  Json parse(std::string_view text) {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > kMostLevels) {
        fail("nested too deeply");
      }
      if (event == Json::parse_event_t::object_start) {
        keys.emplace_back();
      } else if (event == Json::parse_event_t::object_end) {
        keys.pop_back();
      } else if (event == Json::parse_event_t::key &&
                 !keys.back().insert(parsed.get<std::string>()).second) {
        fail(fmt::format("key {} twice", quoted(parsed.get<std::string>())));
      }
      return fault_.empty();
    };
    try {
      return Json::parse(text, watch);
    } catch (const Json::parse_error& error) {
      const auto end = text.begin() + std::ptrdiff_t(std::min(error.byte, text.size()));
      const auto line = 1 + std::count(text.begin(), end, '\n');
      fail(fmt::format("not JSON from line {} on", line));
    } catch (const Json::exception&) {
      fail("holds a number that is too large");
    }
    return {};
  }

  static std::string quoted(std::string_view text) {
    return fmt::format("'{}'", one_line(text, kQuotedBytes));
  }

  bool is_object(const Json& value, std::string_view where) {
    if (!value.is_object()) {
      fail(fmt::format("{}: needed an object", where));
    }
    return value.is_object();
  }

  void check_keys(const Json& object,
                  std::string_view where,
                  std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, key) == known.end()) {
        std::string names;
        for (const auto name : known) {
          names += (names.empty() ? "" : ", ") + std::string(name);
        }
        fail(fmt::format("{}: unknown key {}; known are {}", where, quoted(key), names));
      }
    }
  }

  std::string string_at(const Json& object, const char* key, std::string_view where) {
    const auto found = object.find(key);
    if (found == object.end()) {
      return "";
    }
    if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
      fail(fmt::format("{}: {} must be a text", where, key));
      return "";
    }
    return one_line(found->get_ref<const std::string&>());
  }

  std::optional<Watts> watts_at(const Json& object, const char* key, std::string_view where) {
    const auto found = object.find(key);
    if (found == object.end()) {
      return std::nullopt;
    }
    const double watts = found->is_number() ? found->get<double>() : 0;
    if (!std::isfinite(watts) || watts <= 0) {
      fail(fmt::format("{}: {} must be a number of watts such as 300", where, key));
      return std::nullopt;
    }
    return Watts(watts);
  }

  /// The elements of the array `key`; none where it is absent.
  std::vector<Json> array_at(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) {
      return {};
    }
    if (!found->is_array()) {
      fail(fmt::format("{} must be a list", key));
      return {};
    }
    return {found->begin(), found->end()};
  }

  void read_document(const Json& document) {
    if (!is_object(document, "document")) {
      return;
    }
    check_keys(document, "document",
               {"schema", "source", "terms", "item", "energy_method", "devices", "series"});
    const std::string schema = string_at(document, "schema", "document");
    if (schema != kSchema) {
      fail(fmt::format("schema is {}; needed '{}'", quoted(schema), kSchema));
    }
    notes_.source = string_at(document, "source", "document");
    notes_.terms = string_at(document, "terms", "document");
    notes_.item = string_at(document, "item", "document");
    const std::string method = string_at(document, "energy_method", "document");
    notes_.energy_method = method.empty() ? std::nullopt : energy_method(method);
    if (!method.empty() && !notes_.energy_method) {
      fail(fmt::format("energy_method {}; needed counter, power-integral or average-power",
                       quoted(method)));
    }
    for (const Json& device : array_at(document, "devices")) {
      read_device(device);
    }
    for (const Json& series : array_at(document, "series")) {
      read_series(series);
    }
  }

  void read_device(const Json& device) {
    if (!is_object(device, "devices")) {
      return;
    }
    check_keys(device, "devices", {"name", "min_w", "max_w", "default_w"});
    NotedDevice noted;
    noted.name = string_at(device, "name", "devices");
    if (noted.name.empty()) {
      fail("devices: each needs a name");
    }
    const auto min = watts_at(device, "min_w", noted.name);
    const auto max = watts_at(device, "max_w", noted.name);
    const auto preset = watts_at(device, "default_w", noted.name);
    if (min && max && *min <= *max) {
      noted.limits = LimitRange{*min, *max, preset};
    } else if (min || max || preset) {
      fail(fmt::format("devices: {} needs min_w and max_w, ascending", quoted(noted.name)));
    }
    if (preset && noted.limits && (*preset < *min || *preset > *max)) {
      fail(fmt::format("devices: default_w of {} is out of its range", quoted(noted.name)));
    }
    notes_.devices.push_back(std::move(noted));
  }

  void read_series(const Json& series) {
    if (!is_object(series, "series")) {
      return;
    }
    check_keys(series, "series", {"match", "numerical_state", "reason", "source"});
    NotedSeries noted;
    const auto match = series.find("match");
    if (match == series.end() || !match->is_object() || match->empty()) {
      fail("series: each needs a match such as {\"precision\": \"fp32\"}");
      return;
    }
    for (const auto& [key, value] : match->items()) {
      if (!value.is_string()) {
        fail(fmt::format("series: match of {} must be a text", quoted(key)));
        return;
      }
      noted.match.emplace_back(key, value.get<std::string>());
    }
    const std::string word = string_at(series, "numerical_state", "series");
    const auto state = numerical_state(word);
    if (!state) {
      fail(fmt::format(
          "series: numerical_state {}; needed live, skipping, stalled, dead or unknown",
          quoted(word)));
      return;
    }
    noted.numerical_state = *state;
    noted.reason = string_at(series, "reason", "series");
    noted.source = string_at(series, "source", "series");
    if (noted.reason.empty()) {
      fail("series: each needs a reason");
    }
    notes_.series.push_back(std::move(noted));
  }

  std::string file_;
  std::string fault_;
  ImportNotes notes_;
};

}  // namespace

Result<ImportNotes> read_notes(std::string_view text, const std::string& file) {
  if (auto is_text = check_text(text, file); !is_text) {
    return is_text.error();
  }
  return NotesReader(file).read(text);
}

}  // namespace halfwatt

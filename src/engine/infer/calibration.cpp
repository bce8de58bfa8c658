#include "engine/infer/calibration.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "engine/formats/file.h"
#include "engine/formats/quoted.h"
#include "engine/formats/sha256.h"
#include "engine/ops/delayed_scaling.h"
#include "report/whole_file.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "halfwatt.scales/1";
constexpr DType kFormat = DType::e4m3;  // of both operands of a forward product
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;

const Json& at(const Json& json, std::string_view key) {
  static const Json nothing;
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

// A text of one line, whatever is there.
std::string word(const Json& json) {
  return json.is_string() ? quoted_name(json.get<std::string>()) : "unknown";
}

// The number that is an f32 of `least` or more, if it is one.
std::optional<float> number(const Json& json, double least) {
  const double value = json.is_number() ? json.get<double>() : NAN;
  return value >= least && value <= static_cast<double>(std::numeric_limits<float>::max())
             ? std::optional(static_cast<float>(value))
             : std::nullopt;
}

Result<Json> parsed(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto text = file->whole<char>(kMostBytes);
  if (!text) {
    return text.error();
  }
  Json json = Json::parse(text->begin(), text->end(), nullptr, false);
  if (!json.is_object() || at(json, "schema") != kSchema || !at(json, "layers").is_object()) {
    return bad_input(
        fmt::format("{}: no scales; needed JSON of the schema {}, which "
                    "`halfwatt calibrate` writes",
                    shown(path), kSchema));
  }
  return json;
}

Result<void> check_made_for(const Json& json,
                            const std::string& path,
                            std::string_view model,
                            const std::filesystem::path& weights) {
  if (at(json, "model") != model) {
    return bad_input(fmt::format("{}: scales of the model {}, needed those of {}", path,
                                 word(at(json, "model")), model));
  }
  const auto sha256 = sha256_of(weights);
  if (!sha256) {
    return sha256.error();
  }
  const Json& made_with = at(json, "weights");
  if (at(made_with, "sha256") != *sha256) {
    return bad_input(fmt::format(
        "{}: scales of other weights: of {} with the sha256 {}, needed those of {}, "
        "which has {}",
        path, word(at(made_with, "file")), word(at(made_with, "sha256")), shown(weights),
        *sha256));
  }
  return {};
}

}  // namespace

std::map<std::string, float, std::less<>> largest_magnitudes(const States& states) {
  std::map<std::string, float, std::less<>> all;
  for (const std::string& name : states.names()) {
    if (states.spec(name).role == StateRole::statistics && name.ends_with(kFp8History)) {
      all[name.substr(0, name.size() - kFp8History.size())] = states.save(name).as<float>()[0];
    }
  }
  return all;
}

Result<void> write_calibration(const std::filesystem::path& path, const Calibration& seen) {
  Json json = {{"schema", kSchema},
               {"model", seen.model},
               {"weights", {{"file", seen.weights}, {"sha256", seen.sha256}}},
               {"images", seen.images},
               {"date", seen.date},
               {"format", text(kFormat)},
               {"layers", Json::object()}};
  for (const auto& [operand, amax] : seen.amax) {
    HALFWATT_CHECK(std::isfinite(amax), "nobody keeps the scales of a dead run");
    const std::size_t dot = operand.rfind('.');
    json["layers"][operand.substr(0, dot)][operand.substr(dot + 1)] = {
        {"amax", amax}, {"scale", scale_to(kFormat, amax, 0, 1)}};
  }
  return write_whole_file(path,
                          json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<Fp8Scales> read_scales(const std::filesystem::path& path,
                              std::string_view model,
                              const std::filesystem::path& weights) {
  const auto json = parsed(path);
  if (!json) {
    return json.error();
  }
  if (const auto made_for = check_made_for(*json, shown(path), model, weights); !made_for) {
    return made_for.error();
  }
  Fp8Scales scales;
  for (const auto& [layer, operands] : at(*json, "layers").items()) {
    for (const auto& [side, numbers] : operands.items()) {
      const std::string operand = layer + "." + side;
      const auto scale = number(at(numbers, "scale"), std::numeric_limits<float>::denorm_min());
      const bool is_amax_good = number(at(numbers, "amax"), 0).has_value();
      if (!is_amax_good || !scale) {
        const std::string_view key = is_amax_good ? "scale" : "amax";
        return bad_input(
            fmt::format("{}: the {} of {} is {}, needed a finite number {}", shown(path), key,
                        quoted_name(operand),
                        at(numbers, key).is_primitive() ? at(numbers, key).dump() : "none",
                        is_amax_good ? "over 0" : "of 0 or more"));
      }
      scales[operand] = *scale;
    }
  }
  return scales;
}

}  // namespace halfwatt

#include "engine/models/weights_file.h"

#include <nlohmann/json.hpp>

#include "engine/ops/delayed_scaling.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAverage = ".ema";

// Of the states of a training that are no parameter's: passes/ names them.
bool is_of_the_training(std::string_view name) {
  return name.starts_with("scaler.") || name.starts_with("step.");
}

// KEY.exp_avg lies beside KEY; the scales of fp8, which an inference may need, count as
// weights.
bool is_of_a_parameter(const SafetensorsFile& file, std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot != name.npos && !name.ends_with(kFp8Scale) && !name.ends_with(kFp8History) &&
         file.find(name.substr(0, dot)) != nullptr;
}

}  // namespace

std::string class_names_text(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<std::string> class_names_in(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(std::string(kClassesKey));
  if (found == metadata.end()) {
    return {};
  }
  const Json json = Json::parse(found->second, nullptr, false);
  std::vector<std::string> names;
  for (const Json& each : json.is_array() ? json : Json::array()) {
    if (!each.is_string()) {
      return {};
    }
    names.push_back(each.get<std::string>());
  }
  return names;
}

Result<WeightsFile> WeightsFile::open(const std::filesystem::path& path) {
  auto file = SafetensorsFile::open(path);
  return file ? Result<WeightsFile>(WeightsFile(std::move(*file))) : file.error();
}

bool WeightsFile::is_checkpoint() const {
  return file_.header().metadata.count(std::string(kCheckpointKey)) > 0;
}

std::vector<WeightsFile::Weight> WeightsFile::weights() const {
  std::vector<Weight> all;
  for (const StoredTensor& each : file_.header().tensors) {
    if (!is_checkpoint()) {
      all.push_back({each.name, &each});
    } else if (!is_of_the_training(each.name) && !is_of_a_parameter(file_, each.name)) {
      all.push_back({each.name, find(each.name)});
    }
  }
  return all;
}

const StoredTensor* WeightsFile::find(std::string_view name) const {
  const StoredTensor* average =
      is_checkpoint() ? file_.find(std::string(name) + std::string(kAverage)) : nullptr;
  return average != nullptr ? average : file_.find(name);
}

std::map<std::string, std::string> WeightsFile::metadata() const {
  auto metadata = file_.header().metadata;
  metadata.erase(std::string(kCheckpointKey));
  return metadata;
}

}  // namespace halfwatt

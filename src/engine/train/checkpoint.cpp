#include "engine/train/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/models/weights_file.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

// Of the metadata; its value is the JSON.
const std::string kKey(kCheckpointKey);
constexpr int kFormat = 1;

// JSON has no infinity; the shortest text that is read as the same number.
std::string exact(double value) { return fmt::format("{}", value); }

double number(const Json& text) {
  return std::strtod(text.get_ref<const std::string&>().c_str(), nullptr);
}

std::string bits(const std::deque<bool>& flags) {
  std::string text;
  for (const bool flag : flags) {
    text += flag ? '1' : '0';
  }
  return text;
}

std::deque<bool> flags(const std::string& bits) {
  std::deque<bool> all;
  for (const char bit : bits) {
    all.push_back(bit == '1');
  }
  return all;
}

Json position_json(const TrainPosition& position) {
  Json json = {{"epoch", position.epoch}, {"image", position.image}};
  if (position.score) {
    json["score"] = exact(*position.score);
  }
  return json;
}

TrainPosition read_position(const Json& json) {
  TrainPosition position;
  position.epoch = json.at("epoch").get<std::int64_t>();
  position.image = json.at("image").get<std::int64_t>();
  if (json.contains("score")) {
    position.score = number(json.at("score"));
  }
  return position;
}

std::map<std::string, std::string> made_by(const Target& target) {
  std::map<std::string, std::string> all = target.arithmetic;
  all["halfwatt"] = HALFWATT_VERSION;
  return all;
}

std::string metadata_of(const TrainRecipe& recipe,
                        const Target& target,
                        const TrainProgress& progress) {
  const NumericalWatch::Memory& watch = progress.watch;
  const Json json = {{"format", kFormat},
                     {"recipe", Json::parse(recipe_json(recipe))},
                     {"made_by", made_by(target)},
                     {"attempt", progress.attempt},
                     {"part", progress.part},
                     {"loss", exact(progress.loss)},
                     {"position", position_json(progress.position)},
                     {"watch",
                      {{"skipped", bits(watch.skipped)},
                       {"state", text(watch.state)},
                       {"reason", watch.reason}}}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Error damaged(const std::filesystem::path& path, std::string_view what) {
  return bad_input(fmt::format("{}: a damaged checkpoint: {}", shown(path), what));
}

Result<Json> metadata_in(const SafetensorsFile& file, const std::filesystem::path& path) {
  const auto found = file.header().metadata.find(kKey);
  if (found == file.header().metadata.end()) {
    return bad_input(
        fmt::format("{}: no checkpoint of halfwatt, for it has no {}; weights alone are what "
                    "--weights reads",
                    shown(path), kKey));
  }
  Json json = Json::parse(found->second, nullptr, false);
  if (!json.is_object() || !json.contains("format")) {
    return damaged(path, "its metadata is no JSON object");
  }
  if (json["format"] != kFormat) {
    return bad_input(fmt::format("{}: a checkpoint of format {}, needs {}", shown(path),
                                 json["format"].dump(), kFormat));
  }
  return json;
}

Result<TrainProgress> progress_in(const Json& json,
                                  const TrainRecipe& recipe,
                                  const std::filesystem::path& path) {
  TrainProgress progress;
  try {
    progress.attempt = json.at("attempt").get<std::int64_t>();
    progress.part = json.at("part").get<int>();
    progress.loss = number(json.at("loss"));
    progress.position = read_position(json.at("position"));
    const Json& watch = json.at("watch");
    const auto state = numerical_state(watch.at("state").get<std::string>());
    if (!state) {
      return damaged(path, "watch.state");
    }
    progress.watch = {flags(watch.at("skipped").get<std::string>()), *state,
                      watch.at("reason").get<std::string>()};
  } catch (const Json::exception& error) {
    return damaged(path, error.what());
  }
  if (progress.attempt < 0 || progress.part < 0 || progress.part >= recipe.micro_batches ||
      progress.position.epoch < 0 || progress.position.image < 0) {
    return damaged(path, "attempt, part or position");
  }
  return progress;
}

bool is_saved(const StateSpec& state) { return state.role != StateRole::copy; }

Result<void> check_states(const SafetensorsFile& file,
                          const std::filesystem::path& path,
                          const States& states) {
  std::set<std::string> needed;
  for (const std::string& name : states.names()) {
    const StateSpec& state = states.spec(name);
    if (!is_saved(state)) {
      continue;
    }
    needed.insert(name);
    const StoredTensor* stored = file.find(name);
    if (stored == nullptr) {
      return damaged(path, fmt::format("the state {} is missing", name));
    }
    TensorType type = state.type;
    type.dtype = type.dtype == DType::tf32 ? DType::f32 : type.dtype;  // as it is stored
    if (!(stored->type == type)) {
      return damaged(path, fmt::format("the state {} is {}, needs {}", name, text(stored->type),
                                       text(type)));
    }
  }
  for (const StoredTensor& each : file.header().tensors) {
    if (needed.count(each.name) == 0) {
      return damaged(path, fmt::format("the state {} is one too many", quoted_name(each.name)));
    }
  }
  return {};
}

Result<void> load_states(const SafetensorsFile& file, States& states) {
  for (const StoredTensor& each : file.header().tensors) {
    const auto tensor = file.read(each);
    if (!tensor) {
      return tensor.error();
    }
    if (const auto loaded = states.load(each.name, tensor->view()); !loaded) {
      return loaded;
    }
  }
  return {};
}

std::vector<std::string> warnings_of(const Json& json,
                                     const Target& target,
                                     const std::filesystem::path& path) {
  std::vector<std::string> warnings;
  const Json old = json.value("made_by", Json::object());
  for (const auto& [what, here] : made_by(target)) {
    const std::string before =
        old.contains(what) && old[what].is_string() ? old[what].get<std::string>() : "unknown";
    if (before != here) {
      warnings.push_back(
          fmt::format("{}: made with {} {}, goes on with {}: numbers may differ in their last "
                      "bits from those of a run that was never stopped",
                      shown(path), what, before, here));
    }
  }
  return warnings;
}

}  // namespace

Result<void> write_checkpoint(const std::filesystem::path& path,
                              const TrainRecipe& recipe,
                              const Target& target,
                              const States& states,
                              const TrainProgress& progress) {
  const std::vector<std::string> names =
      states.names();  // which the tensors' names are views of
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const std::string& name : names) {
    if (is_saved(states.spec(name))) {
      tensors.push_back(states.save(name));
      named.push_back({name, tensors.back().view()});
    }
  }
  return write_safetensors(path, named,
                           {{kKey, metadata_of(recipe, target, progress)},
                            {std::string(kClassesKey), class_names_text(recipe.class_names)}});
}

Result<Restored> read_checkpoint(const std::filesystem::path& path,
                                 const TrainRecipe& recipe,
                                 const Target& target,
                                 States& states) {
  const auto file = SafetensorsFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto json = metadata_in(*file, path);
  if (!json) {
    return json.error();
  }
  const std::string differs =
      recipe_difference(json->value("recipe", Json::object()).dump(), recipe_json(recipe),
                        "the checkpoint", "this training");
  if (!differs.empty()) {
    return bad_input(fmt::format("{}: {}", shown(path), differs));
  }
  auto progress = progress_in(*json, recipe, path);
  if (!progress) {
    return progress.error();
  }
  if (const auto fits = check_states(*file, path, states); !fits) {
    return fits.error();
  }
  if (const auto loaded = load_states(*file, states); !loaded) {
    return loaded.error();
  }
  return Restored{std::move(*progress), warnings_of(*json, target, path)};
}

Result<TrainPosition> position_of(const std::filesystem::path& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto json = metadata_in(*file, path);
  if (!json) {
    return json.error();
  }
  try {
    return read_position(json->at("position"));
  } catch (const Json::exception& error) {
    return damaged(path, error.what());
  }
}

}  // namespace halfwatt

#include "engine/train/recipe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

namespace halfwatt {
namespace {

using Json = nlohmann::json;

Json model_json(const VitConfig& model) {
  return {{"name", model.name},
          {"image", model.image},
          {"patch", model.patch},
          {"channels", model.channels},
          {"width", model.width},
          {"depth", model.depth},
          {"heads", model.heads},
          {"hidden", model.hidden},
          {"classes", model.classes},
          {"pool", model.pool == VitConfig::Pool::mean ? "mean" : "token"},
          {"drop_path", model.drop_path},
          {"dropout", model.dropout},
          {"eps", model.eps}};
}

Json optimizer_json(const Optimizer& optimizer) {
  const bool is_adamw = optimizer.kind == Optimizer::Kind::adamw;
  Json json = {{"kind", is_adamw ? "adamw" : "sgd"},
               {"rate", optimizer.rate},
               {"warmup", optimizer.warmup},
               {"floor", optimizer.floor},
               {"beta1", optimizer.beta1},
               {"beta2", optimizer.beta2},
               {"eps", optimizer.eps},
               {"momentum", optimizer.momentum},
               {"decay", optimizer.decay},
               {"decay_all", optimizer.decay_all},
               {"no_decay", optimizer.no_decay},
               {"max_norm", optimizer.max_norm},
               {"average", optimizer.average},
               {"growth", optimizer.growth},
               {"backoff", optimizer.backoff},
               {"interval", optimizer.interval},
               {"floor_scale", optimizer.floor_scale}};
  json["rate_shares"] = Json::object();
  for (const auto& [parameter, share] : optimizer.rate_shares) {
    json["rate_shares"][parameter] = share;
  }
  json["schedule"] = text(optimizer.schedule);
  if (optimizer.schedule != Optimizer::Schedule::constant) {
    json["total"] = optimizer.total;
  }
  return json;
}

Json precision_json(const Precision& precision) {
  Json json = {{"name", precision.name}};
  if (precision.delayed) {
    json["history"] = precision.delayed->history;
    json["margin"] = precision.delayed->margin;
    json["algorithm"] =
        precision.delayed->algorithm == DelayedScaling::Algorithm::max ? "max" : "most_recent";
  }
  return json;
}

std::string shown_value(const Json& json) {
  return json.is_null() ? "not there"
                        : json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// How the two sides of a comparison are called.
struct Sides {
  const std::string& old_name;
  const std::string& new_name;

  std::string differ(const std::string& field, const Json& old_one, const Json& new_one) const {
    return fmt::format("{} is {} in {}, {} in {}", field, shown_value(old_one), old_name,
                       shown_value(new_one), new_name);
  }
};

Json member(const Json& object, const std::string& key) {
  return object.contains(key) ? object.at(key) : Json();
}

std::string difference(const std::string& field,
                       const Json& old_one,
                       const Json& new_one,
                       const Sides& sides) {
  if (old_one == new_one) {
    return {};
  }
  if (old_one.is_array() && new_one.is_array()) {
    if (old_one.size() != new_one.size()) {
      return fmt::format("{} has {} entries in {}, {} in {}", field, old_one.size(),
                         sides.old_name, new_one.size(), sides.new_name);
    }
    std::size_t at = 0;
    while (old_one[at] == new_one[at]) {
      ++at;
    }
    return difference(fmt::format("{}[{}]", field, at), old_one[at], new_one[at], sides);
  }
  if (!old_one.is_object() || !new_one.is_object()) {
    return sides.differ(field, old_one, new_one);
  }
  std::set<std::string> keys;
  for (const Json* each : {&old_one, &new_one}) {
    for (const auto& [key, value] : each->items()) {
      keys.insert(key);
    }
  }
  for (const std::string& key : keys) {
    const std::string path = field.empty() ? key : field + "." + key;
    if (const std::string found =
            difference(path, member(old_one, key), member(new_one, key), sides);
        !found.empty()) {
      return found;
    }
  }
  return {};
}

}  // namespace

std::string recipe_json(const TrainRecipe& recipe) {
  Json json = {{"model", model_json(recipe.model)},
               {"precision", precision_json(recipe.precision)},
               {"optimizer", optimizer_json(recipe.optimizer)},
               {"batch", recipe.batch},
               {"micro_batches", recipe.micro_batches},
               {"smoothing", recipe.smoothing},
               {"seed", recipe.seed},
               {"layer_decay", recipe.layer_decay},
               {"freeze", recipe.freeze},
               {"class_names", recipe.class_names}};
  json["overrides"] = Json::array();
  for (const PrecisionOverride& each : recipe.overrides) {
    json["overrides"].push_back(each.pattern + "=" + each.precision.name);
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string recipe_difference(const std::string& old_json,
                              const std::string& new_json,
                              const std::string& old_name,
                              const std::string& new_name) {
  return difference({}, Json::parse(old_json, nullptr, false),
                    Json::parse(new_json, nullptr, false), {old_name, new_name});
}

}  // namespace halfwatt

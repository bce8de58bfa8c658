#include "engine/train/recipe_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace halfwatt {
namespace {

using Json = nlohmann::json;

// A whole number that is not cut off or wrapped around on the way into a `T`.
template <class T>
bool holds_whole(const Json& json) {
  return json.is_number_unsigned()
             ? std::in_range<T>(json.get<std::uint64_t>())
             : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
}

// Takes keys out of one object, so that those that nobody took are known to be misspelt.
class Section {
 public:
  Section(const Json& object, std::string name) : object_(&object), name_(std::move(name)) {}

  template <class T>
  void take(const char* key, T& value) {
    taken_.insert(key);
    if (!object_->contains(key)) {
      return;
    }
    if constexpr (std::is_integral_v<T>) {
      if (!holds_whole<T>(object_->at(key))) {
        wrong_ = fmt::format("{}.{} is {}, needs a whole number", name_, key,
                             object_->at(key).dump());
        return;
      }
    }
    try {
      value = object_->at(key).get<T>();
    } catch (const Json::exception&) {
      wrong_ = fmt::format("{}.{} is {}", name_, key, object_->at(key).dump());
    }
  }

  /// What is wrong with it, if anything.
  std::string wrong() const {
    if (!wrong_.empty()) {
      return wrong_;
    }
    for (const auto& [key, value] : object_->items()) {
      if (taken_.count(key) == 0) {
        return fmt::format("{} has no key {}", name_, key);
      }
    }
    return {};
  }

 private:
  const Json* object_;
  std::string name_;
  std::set<std::string> taken_;
  std::string wrong_;
};

std::string read_data(const Json& json, RecipeFile& file) {
  Section data(json, "data");
  std::string pixels;
  data.take("pixels", pixels);
  data.take("channels", file.format.channels);
  data.take("side", file.format.side);
  data.take("largest", file.format.largest);
  data.take("held_out", file.held_out);
  data.take("split_seed", file.split_seed);
  file.pixels = pixels;
  return pixels.empty() ? "data.pixels is missing" : data.wrong();
}

std::string read_model(const Json& json, RecipeFile& file) {
  Section model(json, "model");
  std::string name;
  std::string pool = "token";
  model.take("name", name);
  const auto config = vit_named(name);
  if (!config) {
    return config.error().message;
  }
  VitConfig& vit = file.recipe.model;
  vit = *config;
  model.take("width", vit.width);
  model.take("depth", vit.depth);
  model.take("heads", vit.heads);
  model.take("classes", vit.classes);
  model.take("drop_path", vit.drop_path);
  model.take("dropout", vit.dropout);
  model.take("pool", pool);
  vit.hidden = 4 * vit.width;
  vit.channels = file.format.channels;
  if (pool != "token" && pool != "mean") {
    return fmt::format("model.pool is {}, needs token or mean", pool);
  }
  vit.pool = pool == "mean" ? VitConfig::Pool::mean : VitConfig::Pool::token;
  if (vit.heads < 1 || vit.width % vit.heads != 0 || vit.image != file.format.side) {
    return "model: width must be whole heads, and its images those of data.side";
  }
  return model.wrong();
}

std::string read_optimizer(const Json& json, RecipeFile& file) {
  Section section(json, "optimizer");
  Optimizer& optimizer = file.recipe.optimizer;
  std::string kind = "adamw";
  std::string schedule = "constant";
  section.take("kind", kind);
  section.take("schedule", schedule);
  section.take("rate", optimizer.rate);
  section.take("warmup", optimizer.warmup);
  section.take("decay", optimizer.decay);
  section.take("no_decay", optimizer.no_decay);
  section.take("layer_decay", file.recipe.layer_decay);
  section.take("eps", optimizer.eps);
  section.take("beta1", optimizer.beta1);
  section.take("beta2", optimizer.beta2);
  section.take("momentum", optimizer.momentum);
  section.take("max_norm", optimizer.max_norm);
  section.take("floor", optimizer.floor);
  section.take("average", optimizer.average);
  if (kind != "adamw" && kind != "sgd") {
    return fmt::format("optimizer.kind is {}, needs adamw or sgd", kind);
  }
  if (!(optimizer.average >= 0 && optimizer.average < 1)) {
    return fmt::format("optimizer.average is {}, needs a decay from 0 to below 1",
                       optimizer.average);
  }
  if (!(file.recipe.layer_decay > 0 && file.recipe.layer_decay <= 1)) {
    return fmt::format("optimizer.layer_decay is {}, needs a factor above 0 up to 1",
                       file.recipe.layer_decay);
  }
  optimizer.kind = kind == "sgd" ? Optimizer::Kind::sgd : Optimizer::Kind::adamw;
  if (schedule != "constant" && schedule != "cosine" && schedule != "linear") {
    return fmt::format("optimizer.schedule is {}, needs constant, cosine or linear", schedule);
  }
  optimizer.schedule = schedule == "cosine"   ? Optimizer::Schedule::cosine
                       : schedule == "linear" ? Optimizer::Schedule::linear
                                              : Optimizer::Schedule::constant;
  return section.wrong();
}

std::string read_all(const Json& json, RecipeFile& file) {
  Section top(json, "the recipe");
  Json data;
  Json model;
  Json optimizer = Json::object();
  top.take("data", data);
  top.take("model", model);
  top.take("optimizer", optimizer);
  top.take("batch", file.recipe.batch);
  top.take("micro_batches", file.recipe.micro_batches);
  top.take("epochs", file.epochs);
  top.take("smoothing", file.recipe.smoothing);
  top.take("freeze", file.recipe.freeze);
  if (!data.is_object() || !model.is_object() || !optimizer.is_object()) {
    return "data, model and optimizer must be objects, and the first two there";
  }
  for (std::string wrong : {top.wrong(), read_data(data, file), read_model(model, file),
                            read_optimizer(optimizer, file)}) {
    if (!wrong.empty()) {
      return wrong;
    }
  }
  const VitConfig& vit = file.recipe.model;
  if (!(file.held_out >= 0 && file.held_out < 1)) {
    return "data.held_out must be a share from 0 to below 1";
  }
  if (vit.width < 1 || vit.depth < 1 || vit.classes < 1 || !(vit.drop_path >= 0) ||
      vit.drop_path >= 1 || !(vit.dropout >= 0) || vit.dropout >= 1) {
    return "model: width, depth and classes must be 1 or more, drop_path and dropout below 1";
  }
  return file.recipe.batch < 1 || file.recipe.micro_batches < 1 || file.epochs < 1
             ? "batch, micro_batches and epochs must be 1 or more"
             : "";
}

}  // namespace

Result<RecipeFile> read_recipe(const std::filesystem::path& path) {
  std::ifstream stream(path);
  if (!stream) {
    return bad_input(fmt::format("{}: cannot be opened", path.string()));
  }
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object()) {
    return bad_input(fmt::format("{}: needs a JSON object", path.string()));
  }
  RecipeFile file;
  if (const std::string wrong = read_all(json, file); !wrong.empty()) {
    return bad_input(fmt::format("{}: {}", path.string(), wrong));
  }
  return file;
}

Result<Trained> train_by(const RecipeFile& file,
                         const Precision& precision,
                         std::uint64_t seed,
                         Backend& backend) {
  auto images = read_pixel_csv(file.pixels, file.format);
  if (!images) {
    return images.error();
  }
  const Split split = stratified(*images, file.held_out, file.split_seed);
  TrainRecipe recipe = file.recipe;
  recipe.precision = precision;
  recipe.seed = seed;
  const std::int64_t size = recipe.batch * recipe.micro_batches;
  const std::int64_t steps = static_cast<std::int64_t>(split.train.size()) / size;
  if (images->classes > std::max<std::int64_t>(recipe.model.classes, 2)) {
    return bad_input(
        fmt::format("{}: labels up to {}, needs those of {} classes (model.classes)",
                    file.pixels.string(), images->classes - 1, recipe.model.classes));
  }
  if (steps == 0) {
    return bad_input(fmt::format("{}: {} images to train on, a step needs {} (batch)",
                                 file.pixels.string(), split.train.size(), size));
  }
  recipe.optimizer.total = steps * file.epochs;
  auto trainer = Trainer::open(recipe, backend);
  if (!trainer) {
    return trainer.error();
  }
  Trained trained;
  for (std::int64_t epoch = 0; epoch < file.epochs; ++epoch) {
    const auto order = shuffled(static_cast<std::int64_t>(split.train.size()), seed, epoch);
    for (std::int64_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> places;
      for (std::int64_t at = step * size; at < (step + 1) * size; ++at) {
        const std::int64_t place = order[static_cast<std::size_t>(at)];
        places.push_back(split.train[static_cast<std::size_t>(place)]);
      }
      if (const auto started = (*trainer)->start(images->at(places)); !started) {
        return started.error();
      }
      // One is done while the next is brought; at the end there is none.
      const bool is_last = epoch + 1 == file.epochs && step + 1 == steps;
      while ((*trainer)->reports_due() > (is_last ? 0U : 1U)) {
        auto report = (*trainer)->report();
        if (!report) {
          return report.error();
        }
        trained.last = std::move(*report);
      }
    }
  }
  const auto evaluation = (*trainer)->evaluate(images->at(split.held_out));
  if (!evaluation) {
    return evaluation.error();
  }
  trained.evaluation = *evaluation;
  return trained;
}

}  // namespace halfwatt

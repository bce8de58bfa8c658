// bench_vit_parity MODEL PRECISION BATCH cpu|gpu:N RATE SCALE INTERVAL
// WEIGHTS.safetensors DATA.safetensors FIRST.safetensors: halfwatt's side of torch_parity.py.
// Trains MODEL from WEIGHTS, whose head says how many classes there are, on the batches of DATA
// in their order, from the first again where they end: `images` (F32 [N, C, S, S]) and `labels`
// (I64 [N]), a step for each of `factors` (F32 [steps]), by which the images of that step are
// multiplied. RATE is of AdamW; a loss scale is SCALE at first and grows after INTERVAL steps.
//
// Writes `logits` and `gradient:NAME` of the first step to FIRST, in F32 and of the loss
// itself, and prints a line of JSON: `losses`, `skipped` and, where there is a scale, `scales`
// after each step; `state`, live or dead.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/numerical_state.h"
#include "cli/compute_device.h"
#include "cli/help.h"
#include "engine/exec/session.h"
#include "engine/formats/safetensors.h"
#include "engine/models/weights.h"
#include "engine/passes/autodiff.h"
#include "engine/tensor/convert.h"
#include "engine/train/trainer.h"
#include "peers/vit_peer.h"

namespace halfwatt {
namespace {

double rate_in(const std::string& word) {
  char* end = nullptr;
  const double rate = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !(rate > 0 && rate <= 1)) {
    give_up(fmt::format("rate {}: needed a number of more than 0 up to 1", word));
  }
  return rate;
}

Tensor tensor_in(const std::string& path,
                 std::string_view name,
                 DType dtype,
                 std::size_t rank) {
  const SafetensorsFile file = taken(SafetensorsFile::open(path));
  const StoredTensor* stored = file.find(name);
  Tensor tensor = stored ? taken(file.read(*stored)) : Tensor();
  if (!stored || tensor.dtype() != dtype || tensor.shape().rank() != rank ||
      tensor.shape().elements() == 0) {
    give_up(fmt::format("{}: {} {}; needed {} of {} extents", path, name,
                        stored ? "is " + text(tensor.type()) : "is not there", text(dtype),
                        rank));
  }
  return tensor;
}

/// Batches in their order, from the first again where they end.
class Batches {
 public:
  Batches(const std::string& path, std::int64_t batch)
      : images_(tensor_in(path, "images", DType::f32, 4)),
        labels_(tensor_in(path, "labels", DType::i64, 1)),
        factors_(doubles(tensor_in(path, "factors", DType::f32, 1))),
        batch_(batch) {
    const std::int64_t images = images_.shape()[0];
    if (images % batch != 0 || labels_.shape()[0] != images) {
      give_up(
          fmt::format("{}: {} images and {} labels; needed as many of both, in batches of "
                      "{}",
                      path, images, labels_.shape()[0], batch));
    }
  }

  std::int64_t steps() const { return static_cast<std::int64_t>(factors_.size()); }

  /// The images or the labels of a step, as that input takes them.
  Tensor of(std::int64_t step, const PlanInput& input) const {
    const std::int64_t first = step * batch_ % images_.shape()[0];
    if (input.name == "labels") {
      return rows_as(labels_.view(), first, input.type);
    }
    Tensor some = rows_as(images_.view(), first, input.type);
    const auto factor = static_cast<float>(factors_[static_cast<std::size_t>(step)]);
    for (float& pixel : some.as<float>()) {
      pixel *= factor;
    }
    return some;
  }

  /// Gives up where the model takes other images or has fewer classes.
  void check(const std::string& path, const VitConfig& model) const {
    const Shape needed{images_.shape()[0], model.channels, model.image, model.image};
    const auto labels = labels_.as<std::int64_t>();
    const auto [least, most] = std::minmax_element(labels.begin(), labels.end());
    if (images_.shape() != needed || *least < 0 || *most >= model.classes) {
      give_up(fmt::format("{}: images {}, labels {} to {}; {} needs {} and 0 to {}", path,
                          text(images_.type()), *least, *most, model.name,
                          text(TensorType{DType::f32, needed}), model.classes - 1));
    }
  }

 private:
  Tensor images_;
  Tensor labels_;
  std::vector<double> factors_;
  std::int64_t batch_;
};

struct Asked {
  TrainRecipe recipe;
  DeviceId device;
  float scale = 0;
  std::string weights;
  std::string data;
  std::string first;
};

Asked read(const std::vector<std::string>& words) {
  if (words.size() != 10) {
    give_up(
        "needed MODEL PRECISION BATCH cpu|gpu:N RATE SCALE INTERVAL WEIGHTS.safetensors "
        "DATA.safetensors FIRST.safetensors");
  }
  Asked asked{{},
              computing_device(words[3]),
              static_cast<float>(whole_number("scale", words[5])),
              words[7],
              words[8],
              words[9]};
  TrainRecipe& recipe = asked.recipe;
  recipe.model = taken(vit_named(words[0]));
  recipe.model.classes = tensor_in(asked.weights, "head.bias", DType::f32, 1).shape()[0];
  recipe.precision = taken(precision_named(words[1]));
  recipe.batch = whole_number("batch", words[2]);
  recipe.optimizer = pytorchs_adamw(recipe.precision, rate_in(words[4]));
  recipe.optimizer.interval = whole_number("interval", words[6]);
  return asked;
}

/// A training, step by step.
class Training {
 public:
  Training(const Asked& asked, const Batches& batches, Backend& backend)
      : recipe_(asked.recipe), batches_(&batches) {
    std::vector<Plan> plans;
    plans.push_back(std::move(taken(training_plans(recipe_, backend.target())).front()));
    session_ = taken(Session::open(std::move(plans), {&backend}, states_));
    taken(load_weights(asked.weights, states_));
    if (scales()) {
      const std::vector<float> scale = {asked.scale};
      done(states_.load(kLossScale, Tensor::of<float>(DType::f32, Shape(), scale).view()));
    }
    bind_valid(*session_, recipe_.batch);
  }

  void step() {
    for (const PlanInput& input : session_->plan(0).inputs) {
      if (input.name == "images" || input.name == "labels") {
        session_->bind(0, input.name, batches_->of(steps_done(), input).view());
      } else if (input.name == kRandom) {
        const std::vector<std::int64_t> key = {1, steps_done() + 1, 0};
        session_->bind(0, kRandom, Tensor::of<std::int64_t>(DType::i64, Shape{3}, key).view());
      }
    }
    done(session_->run(0));
    losses_.push_back(result("loss"));
    skipped_.push_back(scales() ? result("skipped") : 0);
    if (scales()) {
      scales_.push_back(result("scale"));
    }
    // A step that was skipped may have any loss.
    is_dead_ = is_dead_ || (skipped_.back() == 0 && !std::isfinite(losses_.back()));
  }

  /// Logits and gradients of the step, in which the loss scale was `scale`.
  void write(const std::string& path, float scale) const {
    std::vector<std::string> names;
    std::vector<Tensor> values;
    for (const PlanResult& each : session_->plan(0).results) {
      const bool is_gradient = each.name.rfind(kGradient, 0) == 0;
      if (!is_gradient && each.name != "logits") {
        continue;
      }
      const Tensor stored = session_->result(0, each.name);
      Tensor value(TensorType{DType::f32, stored.shape()});
      convert(stored.view(), value.view());
      for (float& number : value.as<float>()) {
        number /= is_gradient && scales() ? scale : 1;
      }
      names.push_back(each.name);
      values.push_back(std::move(value));
    }
    std::vector<NamedTensor> named;
    for (std::size_t at = 0; at < names.size(); ++at) {
      named.push_back({names[at], values[at].view()});
    }
    done(write_safetensors(path, named));
  }

  std::string json() const {
    const bool is_live = !is_dead_ && weights_are_finite(*session_);
    return fmt::format(
        "{{\"losses\": {}, \"skipped\": {}, \"scales\": {}, \"state\": \"{}\", "
        "\"versions\": {{\"halfwatt\": \"{}\"}}}}",
        json_list(losses_), json_list(skipped_), scales() ? json_list(scales_) : "null",
        text(is_live ? NumericalState::live : NumericalState::dead), kVersion);
  }

 private:
  bool scales() const { return recipe_.precision.scale != Precision::Scale::none; }
  std::int64_t steps_done() const { return static_cast<std::int64_t>(losses_.size()); }
  double result(std::string_view name) const { return doubles(session_->result(0, name))[0]; }

  TrainRecipe recipe_;
  const Batches* batches_;
  States states_;
  std::unique_ptr<Session> session_;
  std::vector<double> losses_;
  std::vector<double> skipped_;
  std::vector<double> scales_;
  bool is_dead_ = false;
};

void run(const std::vector<std::string>& words) {
  const Asked asked = read(words);
  const Batches batches(asked.data, asked.recipe.batch);
  batches.check(asked.data, asked.recipe.model);
  const auto backend = taken(open_backend(asked.device, 0, false));
  Training training(asked, batches, *backend);
  training.step();
  training.write(asked.first, asked.scale);
  for (std::int64_t step = 1; step < batches.steps(); ++step) {
    training.step();
  }
  fmt::print("{}\n", training.json());
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) { halfwatt::run({argv + 1, argv + argc}); }

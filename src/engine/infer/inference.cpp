#include "engine/infer/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/failure.h"

namespace halfwatt {
namespace {

double gib(double bytes) { return bytes / (1024.0 * 1024 * 1024); }

Result<Plan> plan_of(const InferRecipe& recipe, std::int64_t batch, const Target& target) {
  const auto graph = with_precision(vit(recipe.model, batch, ModelMode::infer),
                                    recipe.precision, recipe.overrides);
  return graph ? lower(*graph, {&target, 1}) : graph.error();
}

// A parameter that only its copy is read of is none of the plan's states, but held as well.
double bytes_held(const Plan& plan) {
  double sum = static_cast<double>(footprint(plan, 0).total());
  const std::vector<int>& held = plan.devices[0].states;
  for (std::size_t at = 0; at < plan.graph.states().size(); ++at) {
    if (std::find(held.begin(), held.end(), static_cast<int>(at)) == held.end()) {
      sum += static_cast<double>(aligned(plan.graph.states()[at].type.bytes()));
    }
  }
  return sum;
}

// With what a user can do about it.
Error too_large(const InferRecipe& recipe, double needed, const Target& target) {
  std::string way_out = "no batch fits: a smaller --model does";
  for (std::int64_t batch = recipe.batch / 2; batch > 0; batch /= 2) {
    const auto smaller = plan_of(recipe, batch, target);
    if (!smaller) {
      return smaller.error();
    }
    if (bytes_held(*smaller) <= target.memory.value()) {
      way_out = fmt::format("--batch {} fits", batch);
      break;
    }
  }
  return bad_input(fmt::format("{} with --batch {} needs {:.1f} GiB, {} has {:.1f}: {}",
                               recipe.model.name, recipe.batch, gib(needed), target.name,
                               gib(target.memory.value()), way_out));
}

// `count` whole images from `first` on, the last of all again where there are no more.
Tensor rows_of(const TensorView& images, std::int64_t first, std::int64_t count) {
  Tensor rows(TensorType{DType::f32, images.type.shape.with(0, count)});
  const std::int64_t each = rows.shape().elements() / count;
  const auto from = images.as<float>();
  const auto to = rows.as<float>();
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t image = std::min(first + row, images.type.shape[0] - 1);
    std::copy_n(from.data() + image * each, each, to.data() + row * each);
  }
  return rows;
}

}  // namespace

Result<void> check_images(const VitConfig& model, const TensorView& images) {
  const Shape& shape = images.type.shape;
  const Shape one{1, model.channels, model.image, model.image};
  if (images.type.dtype != DType::f32 || shape.rank() != 4 || shape[0] < 1 ||
      !(shape.with(0, 1) == one)) {
    return bad_input(fmt::format("images: {}; {} needs f32 Nx{}x{}x{} of one image or more",
                                 text(images.type), model.name, model.channels, model.image,
                                 model.image));
  }
  const auto numbers = images.as<float>();
  const auto bad = std::find_if(numbers.begin(), numbers.end(),
                                [](float number) { return !std::isfinite(number); });
  if (bad == numbers.end()) {
    return {};
  }
  const std::int64_t place = (bad - numbers.begin()) % one.elements();
  const std::int64_t side = model.image;
  return bad_input(fmt::format(
      "images: image {} holds {} in channel {}, row {}, column {}; needed finite numbers",
      (bad - numbers.begin()) / one.elements(), *bad, place / (side * side),
      place / side % side, place % side));
}

Result<std::unique_ptr<Inference>> Inference::open(const InferRecipe& recipe,
                                                   Backend& backend) {
  auto plan = plan_of(recipe, recipe.batch, backend.target());
  if (!plan) {
    return plan.error();
  }
  if (const double needed = bytes_held(*plan); needed > backend.target().memory.value()) {
    return too_large(recipe, needed, backend.target());
  }
  std::unique_ptr<Inference> inference(new Inference(backend));
  try {
    for (const StateSpec& state : plan->graph.states()) {
      if (state.role == StateRole::parameter) {
        inference->states_.ensure(state, backend);
      }
    }
  } catch (const Failure& failure) {
    return failure.error();
  }
  std::vector<Plan> plans;
  plans.push_back(std::move(*plan));
  auto session = Session::open(std::move(plans), {&backend}, inference->states_);
  if (!session) {
    return session.error();
  }
  inference->session_ = std::move(*session);
  return inference;
}

bool Inference::is_emulated() const {
  const Target& target = backend_->target();
  const auto& steps = plan().devices[0].steps;
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return target.support &&
           target.support(plan().graph, step.node).kind == Support::Kind::emulated;
  });
}

Result<Tensor> Inference::logits(const TensorView& images) {
  const std::int64_t batch = plan().inputs[0].type.shape[0];
  const std::int64_t all = images.type.shape[0];
  Tensor logits;
  for (std::int64_t first = 0; first < all; first += batch) {
    session_->bind(0, "images", rows_of(images, first, batch).view());
    if (const auto ran = session_->run(0); !ran) {
      return ran.error();
    }
    const Tensor rows = session_->result(0, "logits");
    if (first == 0) {
      logits = Tensor(TensorType{rows.dtype(), rows.shape().with(0, all)});
    }
    const std::size_t each = rows.type().bytes() / static_cast<std::size_t>(batch);
    const auto valid = static_cast<std::size_t>(std::min(batch, all - first));
    std::copy_n(rows.view().data, valid * each,
                logits.view().data + static_cast<std::size_t>(first) * each);
  }
  return logits;
}

}  // namespace halfwatt

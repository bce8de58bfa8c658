#include "engine/infer/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/passes/pipeline.h"
#include "engine/plan/fit.h"
#include "engine/plan/summary_text.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

double bytes_held(const Plan& plan) { return static_cast<double>(footprint(plan, 0).total()); }

// With what a user can do about it.
Error too_large(const InferRecipe& recipe, const Plan& plan, const Target& target) {
  const auto fit = largest_that_fits(std::nullopt, [&](const StepCut& cut) -> Result<double> {
    InferRecipe less = recipe;
    less.batch = cut.batch;
    const auto smaller = inference_plan(less, target);
    return smaller ? Result<double>(bytes_held(*smaller) - target.memory->value())
                   : smaller.error();
  });
  if (!fit) {
    return fit.error();
  }
  return bad_input(
      fmt::format("{} with --batch {} does not fit: {} are needed on {}, {} are there; {}",
                  recipe.model.name, recipe.batch, bytes_text(Bytes(bytes_held(plan))),
                  target.name, bytes_text(*target.memory),
                  *fit ? fmt::format("--batch {} would", (*fit)->batch) : "no batch does"));
}

}  // namespace

Result<Plan> inference_plan(const InferRecipe& recipe, const Target& target) {
  Compilation asked;
  asked.precision = recipe.precision;
  asked.overrides = recipe.overrides;
  asked.weights_are_fixed = true;
  asked.scales = recipe.scales;
  asked.calibrates = recipe.calibrates;
  asked.targets = {target};
  const auto compiled = compile(
      vit(recipe.model, recipe.batch, ModelMode::infer, 0, recipe.normalisation), asked);
  return compiled ? lower(compiled->graph, asked.targets) : compiled.error();
}

Result<std::unique_ptr<Inference>> Inference::open(const InferRecipe& recipe,
                                                   Backend& backend) {
  auto plan = inference_plan(recipe, backend.target());
  if (!plan) {
    return plan.error();
  }
  const Target& target = backend.target();
  if (target.memory && bytes_held(*plan) > target.memory->value()) {
    return too_large(recipe, *plan, target);
  }
  std::unique_ptr<Inference> inference(new Inference(backend));
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
    session_->bind(
        0, "images",
        rows_as(images, first, {images.type.dtype, images.type.shape.with(0, batch)}).view());
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

#include "workloads/product_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "engine/ops/builder.h"
#include "engine/ops/matmul.h"
#include "engine/plan/plan.h"
#include "engine/train/trainer.h"
#include "workloads/plan_run.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

// What is narrower than its storage is rounded by the product itself.
Graph product(const ProductShape& shape, const Precision& precision) {
  const bool is_stored = precision.compute != DType::tf32 && facts(precision.compute).bytes > 1;
  const DType dtype = is_stored ? precision.compute : precision.output;
  Graph graph;
  Builder build(graph);
  build.set_name("product");
  const auto [m, k, n] = std::array{shape.m, shape.k, shape.n};
  const Value a = build.input("a", {dtype, shape.transpose_a ? Shape{k, m} : Shape{m, k}});
  const Value b = build.input("b", {dtype, shape.transpose_b ? Shape{n, k} : Shape{k, n}});
  std::vector<Value> inputs = {a, b};
  Attributes attributes;
  for (const auto& [key, transposes] : {std::pair("transpose_a", shape.transpose_a),
                                        std::pair("transpose_b", shape.transpose_b)}) {
    if (transposes) {
      attributes.set(key, true);
    }
  }
  if (!is_stored) {
    attributes.set("math_a", precision.compute);
    attributes.set("math_b", precision.compute);
  }
  if (precision.delayed) {
    const Value scale = build.constant(1, {DType::f32, Shape()});
    inputs.insert(inputs.end(), 2, scale);
    attributes.set("scaling", build.name());
  }
  graph.set_result("product", build.add(Op::matmul, std::move(inputs), std::move(attributes)));
  return graph;
}

class ProductTask final : public EngineTask {
 public:
  /// Of one shape there is no knob.
  ProductTask(std::vector<ProductShape> shapes,
              std::vector<Knob> knobs,
              WorkloadInfo info,
              EngineDevice device)
      : shapes_(std::move(shapes)),
        knobs_(std::move(knobs)),
        device_(std::move(device)),
        info_(std::move(info)) {
    info_.unit = "product";
  }

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return knobs_; }
  double items(const Setting&) const override { return 1; }

  std::string why_refused(const Setting& setting) const override {
    const Target& target = device_.backend->target();
    const auto precision = precision_of(setting);
    if (!precision || !target.support) {
      return "";
    }
    const Graph graph = product(shape_of(setting), *precision);
    for (int id = 0; id < graph.size(); ++id) {
      const Support support = target.support(graph, id);
      if (support.kind == Support::Kind::refused) {
        return support.reason;
      }
    }
    return "";
  }

  Result<Prediction> predict(const Setting& setting) const override {
    const auto plan = plan_of(setting);
    return plan ? Result<Prediction>(prediction({&*plan, 1}, device_)) : plan.error();
  }

  Result<StepLoop::Step> prepare(const Setting& setting) override {
    auto plan = plan_of(setting);
    if (!plan) {
      return plan.error();
    }
    auto opened = PlanRun::open(std::move(*plan), *device_.backend, 1);
    if (!opened) {
      return opened.error();
    }
    const std::shared_ptr<PlanRun> run = std::move(*opened);  // as a std::function is copied
    // The operands stay, so one look tells whether their product is finite.
    if (const auto done = run->run(); !done) {
      return done.error();
    }
    const auto state = run->is_finite("product") ? NumericalState::live : NumericalState::dead;
    return StepLoop::Step([run, state]() -> Result<NumericalState> {
      const auto done = run->run();
      return done ? Result<NumericalState>(state) : done.error();
    });
  }

 private:
  Result<Plan> plan_of(const Setting& setting) const {
    const auto precision = precision_of(setting);
    if (!precision) {
      return precision.error();
    }
    return lower(product(shape_of(setting), *precision), {&device_.backend->target(), 1});
  }

  const ProductShape& shape_of(const Setting& setting) const {
    for (const auto& [name, value] : setting.values()) {
      if (name == shape_knob().name) {
        const auto found =
            std::find_if(shapes_.begin(), shapes_.end(),
                         [&](const ProductShape& shape) { return text(shape) == text(value); });
        HALFWATT_CHECK(found != shapes_.end(), "a shape of the task's own");
        return *found;
      }
    }
    return shapes_.front();
  }

  std::vector<ProductShape> shapes_;
  std::vector<Knob> knobs_;
  EngineDevice device_;
  WorkloadInfo info_;
};

}  // namespace

Result<ProductShape> product_shape(std::string_view text) {
  const Error wrong =
      bad_input(fmt::format("shape {}: needed MxKxN, as in 4096x768x768, each at least 1 and "
                            "no matrix of over 2^31 elements",
                            text));
  std::array<std::int64_t, 3> extents{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) {
      return wrong;
    }
    const auto [next, error] = std::from_chars(at, end, extents[i]);
    if (error != std::errc() || extents[i] < 1 || extents[i] > kMostElements) {
      return wrong;
    }
    at = next;
  }
  const auto [m, k, n] = extents;
  if (at != end || m > kMostElements / k || k > kMostElements / n || m > kMostElements / n) {
    return wrong;
  }
  return ProductShape{m, k, n};
}

std::string text(const ProductShape& shape) {
  return fmt::format("{}x{}x{} {}{}", shape.m, shape.k, shape.n, shape.transpose_a ? "T" : "N",
                     shape.transpose_b ? "T" : "N");
}

Result<std::vector<ProductShape>> products_of(const ModelChoice& choice,
                                              bool trains,
                                              std::int64_t batch,
                                              const Target& target) {
  TrainRecipe recipe;
  recipe.model = choice.model;
  recipe.batch = batch;
  const auto plans = training_plans(recipe, target);
  if (!plans) {
    return plans.error();
  }
  const Graph& graph = plans->front().graph;
  std::vector<ProductShape> all;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::matmul || (!trains && node.phase != Phase::forward)) {
      continue;
    }
    const MatmulExtents extents = matmul_extents(node, graph.type(node.inputs[0]).shape,
                                                 graph.type(node.inputs[1]).shape);
    const ProductShape shape{extents.m, extents.k, extents.n,
                             node.attributes.flag("transpose_a"),
                             node.attributes.flag("transpose_b")};
    if (std::find(all.begin(), all.end(), shape) == all.end()) {
      all.push_back(shape);
    }
  }
  return all;
}

Knob shape_knob() { return {"shape", "", {}}; }

std::unique_ptr<EngineTask> product_task(const ProductShape& shape, EngineDevice device) {
  const std::string extents = fmt::format("{}x{}x{}", shape.m, shape.k, shape.n);
  WorkloadInfo info;
  info.name = "matmul " + extents;
  info.labels = {{"op", "matmul"}, {"shape", extents}};
  return std::make_unique<ProductTask>(std::vector{shape}, std::vector{model_knobs().front()},
                                       std::move(info), std::move(device));
}

std::unique_ptr<EngineTask> product_task(std::vector<ProductShape> shapes,
                                         std::string name,
                                         EngineDevice device) {
  WorkloadInfo info;
  info.labels = {{"op", "matmul"}, {"of", name}};
  info.name = "matmul of " + std::move(name);
  return std::make_unique<ProductTask>(std::move(shapes),
                                       std::vector{shape_knob(), model_knobs().front()},
                                       std::move(info), std::move(device));
}

}  // namespace halfwatt

#include "workloads/product_task.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "engine/ops/builder.h"
#include "engine/plan/plan.h"
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
  const Value a = build.input("a", {dtype, Shape{shape.m, shape.k}});
  const Value b = build.input("b", {dtype, Shape{shape.n, shape.k}});
  std::vector<Value> inputs = {a, b};
  Attributes attributes{{"transpose_b", true}};  // as weights lie
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
  ProductTask(const ProductShape& shape, EngineDevice device)
      : shape_(shape), device_(std::move(device)) {
    info_.name = fmt::format("matmul {}x{}x{}", shape.m, shape.k, shape.n);
    info_.labels = {{"op", "matmul"},
                    {"shape", fmt::format("{}x{}x{}", shape.m, shape.k, shape.n)}};
    info_.unit = "product";
  }

  const WorkloadInfo& info() const override { return info_; }
  std::vector<Knob> knobs() const override { return {model_knobs().front()}; }
  double items(const Setting&) const override { return 1; }

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
    return lower(product(shape_, *precision), {&device_.backend->target(), 1});
  }

  ProductShape shape_;
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

std::unique_ptr<EngineTask> product_task(const ProductShape& shape, EngineDevice device) {
  return std::make_unique<ProductTask>(shape, std::move(device));
}

}  // namespace halfwatt

#include "workloads/plan_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/models/initial.h"
#include "engine/tensor/convert.h"
#include "workloads/random_data.h"

namespace halfwatt {
namespace {

Tensor ones(const TensorType& type) {
  const std::vector<std::int64_t> values(static_cast<std::size_t>(type.shape.elements()), 1);
  return Tensor::of<std::int64_t>(DType::i64, type.shape, values);
}

}  // namespace

Result<std::unique_ptr<PlanRun>> PlanRun::open(Plan plan,
                                               Backend& backend,
                                               std::uint64_t seed) {
  std::unique_ptr<PlanRun> it(new PlanRun);
  std::vector<Plan> plans;
  plans.push_back(std::move(plan));
  auto session = Session::open(std::move(plans), {&backend}, it->states_);
  if (!session) {
    return session.error();
  }
  it->session_ = std::move(*session);
  for (const StateSpec& state : it->plan().graph.states()) {
    const bool is_lone_copy = state.role == StateRole::copy && !it->states_.has(state.of);
    const bool is_set = state.role == StateRole::parameter || is_lone_copy;
    if (!is_set || !it->states_.has(state.name)) {
      continue;  // it is new, or follows its parameter, or nobody reads it
    }
    StateSpec parameter = state;
    parameter.name = is_lone_copy ? state.of : state.name;
    if (const auto set = it->states_.load(state.name, initial_value(parameter, seed).view());
        !set) {
      return set.error();
    }
  }
  for (const PlanInput& input : it->plan().inputs) {
    const Tensor value =
        is_float(input.type.dtype) ? random_tensor(input.type, ++seed) : ones(input.type);
    it->session_->bind(0, input.name, value.view());
  }
  return it;
}

Tensor PlanRun::result(std::string_view name) const {
  const Tensor found = session_->result(0, name);
  Tensor wide(TensorType{DType::f32, found.shape()});
  convert(found.view(), wide.view());
  return wide;
}

bool PlanRun::is_finite(std::string_view result) const {
  const Tensor found = this->result(result);
  const auto values = found.as<float>();
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace halfwatt

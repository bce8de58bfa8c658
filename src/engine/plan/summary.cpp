#include "engine/plan/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/ops/op_def.h"
#include "engine/plan/schedule.h"

namespace halfwatt {
namespace {

constexpr std::size_t kRowBytes = 16;  // section 1.10 of the facts on mixed precision

// "blocks.3" of "blocks.3.attn.qkv", "head" of "head.weight".
std::string layer_of(const std::string& name) {
  const bool block = name.rfind("blocks.", 0) == 0;
  return name.substr(0, name.find('.', block ? 7 : 0));
}

// Whose state it is: a parameter's, or the update's.
std::string owner(const StateSpec& state) {
  return state.role == StateRole::parameter ? state.name
         : state.of.empty()                 ? "update"
                                            : state.of;
}

std::int64_t padded(std::int64_t extent, DType dtype) {
  const auto row = static_cast<std::int64_t>(kRowBytes / bytes_of(dtype));
  return (extent + row - 1) / row * row;
}

// FLOPs of a product whose matrices have padded rows, as a multiple of what it has.
double padding(const Node& node, const TensorType& a, const TensorType& b) {
  const Shape& c = node.outputs[0].shape;
  const bool transpose_a = node.attributes.flag("transpose_a");
  const bool rows_of_k = !transpose_a || node.attributes.flag("transpose_b");
  const std::int64_t m = c.rows();
  const std::int64_t k = transpose_a ? a.shape.rows() : a.shape.last(0);
  const auto share = [](std::int64_t extent, DType dtype, bool pad) {
    const std::int64_t after = pad ? padded(extent, dtype) : extent;
    return static_cast<double>(after) / static_cast<double>(extent);
  };
  return share(m, a.dtype, transpose_a) * share(k, a.dtype, rows_of_k) *
         share(c.last(0), b.dtype, true);
}

class Summary {
 public:
  Summary(const StepPlan& step, std::span<const Target> targets)
      : step_(&step), targets_(targets) {}

  PlanSummary run() {
    see_devices();
    see_plan(step_->plan, step_->micro_batches);
    if (step_->update) {
      see_plan(*step_->update, 1);
    }
    return std::move(summary_);
  }

 private:
  void see_devices() {
    const auto prediction = predict(*step_, targets_);
    known_ = prediction.has_value();
    summary_.time = known_ ? std::optional(prediction->time) : std::nullopt;
    for (std::size_t device = 0; device < targets_.size(); ++device) {
      const Target& target = targets_[device];
      summary_.devices.push_back(
          {target.name, target.source, target.memory,
           step_->footprint(static_cast<int>(device)),
           known_ ? std::optional(prediction->busy[device]) : std::nullopt,
           emulates(static_cast<int>(device))});
    }
  }

  std::optional<bool> emulates(int device) const {
    const auto& support = targets_[static_cast<std::size_t>(device)].support;
    if (!support) {
      return std::nullopt;
    }
    const auto any = [&](const Plan& plan) {
      const auto& steps = plan.devices[static_cast<std::size_t>(device)].steps;
      return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
        return support(plan.graph, step.node).kind == Support::Kind::emulated;
      });
    };
    return any(step_->plan) || (step_->update && any(*step_->update));
  }

  LayerSummary& layer(const std::string& name) {
    std::string key = layer_of(name);
    if (key.empty()) {
      key = "graph";
    }
    const auto [place, is_new] = index_.emplace(key, summary_.layers.size());
    if (is_new) {
      summary_.layers.push_back({});
      summary_.layers.back().layer = key;
      summary_.layers.back().busy = known_ ? std::optional(Seconds(0)) : std::nullopt;
    }
    return summary_.layers[place->second];
  }

  void see_plan(const Plan& plan, int times) {
    // Devices have their own order; nodes have the model's.
    for (const Node& node : plan.graph.nodes()) {
      if (is_step(node)) {
        layer(node.name);
      }
    }
    for (const DevicePlan& device : plan.devices) {
      for (const Step& step : device.steps) {
        see_step(plan.graph, step.node, times);
      }
    }
    see_kept(plan.graph);
    for (const DevicePlan& device : plan.devices) {
      for (const int index : device.states) {
        const StateSpec& state = plan.graph.states()[static_cast<std::size_t>(index)];
        if (states_.insert(state.name).second) {
          layer(owner(state)).states += Bytes(static_cast<double>(aligned(state.type.bytes())));
        }
      }
    }
  }

  void see_step(const Graph& graph, int id, int times) {
    const Node& node = graph.node(id);
    const Target& target = targets_[static_cast<std::size_t>(node.device)];
    const Cost cost = halfwatt::cost(graph, id);
    LayerSummary& layer = this->layer(node.name);
    layer.flops += cost.flops * times;
    layer.moved += Bytes(cost.bytes * times);
    if (layer.busy) {
      *layer.busy += predicted_time(graph, id, target) * times;
    }
    summary_.flops += cost.flops * times;
    summary_.moved += Bytes(cost.bytes * times);
    if (node.op == Op::transfer) {
      summary_.between += Bytes(static_cast<double>(node.outputs[0].bytes()) * times);
    }
    if (node.op == Op::matmul) {
      see_product(graph, id, times);
    }
  }

  void see_kept(const Graph& graph) {
    std::set<Value> kept;
    for (const Node& node : graph.nodes()) {
      for (Value value : node.inputs) {
        while (graph.node(value.node).op == Op::reshape) {
          value = graph.node(value.node).inputs[0];
        }
        const Node& from = graph.node(value.node);
        const bool source = definition(from.op).numeric == NumericClass::source;
        if (node.phase == Phase::backward && from.phase == Phase::forward && !source &&
            kept.insert(value).second) {
          layer(from.name).kept += Bytes(static_cast<double>(graph.type(value).bytes()));
        }
      }
    }
  }

  void see_product(const Graph& graph, int id, int times) {
    const Node& node = graph.node(id);
    const TensorType& a = graph.type(node.inputs[0]);
    const TensorType& b = graph.type(node.inputs[1]);
    const auto is_unaligned = [](const TensorType& type) {
      return static_cast<std::size_t>(type.shape.last(0)) * bytes_of(type.dtype) % kRowBytes !=
             0;
    };
    if (!is_unaligned(a) && !is_unaligned(b) && !is_unaligned(node.outputs[0])) {
      return;
    }
    const double more = padding(node, a, b);
    UnalignedProduct found;
    found.layer = node.name;
    found.phase = node.phase;
    found.extents = fmt::format("{} . {}{}", text(a.shape), text(b.shape),
                                node.attributes.flag("transpose_b") ? " transposed" : "");
    found.padding = more - 1;
    found.gain = gain(graph, id, more, times);
    summary_.unaligned.push_back(std::move(found));
  }

  std::optional<Seconds> gain(const Graph& graph, int id, double more, int times) const {
    const Target& target = targets_[static_cast<std::size_t>(graph.node(id).device)];
    const auto slow = target.flops.find(DType::f32);
    if (target.time || !has_rates(target) || slow == target.flops.end()) {
      return std::nullopt;
    }
    const Cost cost = halfwatt::cost(graph, id);
    const Seconds plain =
        target.launch +
        Seconds(std::max(cost.flops / slow->second, cost.bytes / target.bytes_per_second));
    const Seconds best =
        target.launch + (predicted_time(graph, id, target) - target.launch) * more;
    return std::max(Seconds(0), plain - best) * times;
  }

  const StepPlan* step_;
  std::span<const Target> targets_;
  bool known_ = false;
  PlanSummary summary_;
  std::map<std::string, std::size_t> index_;
  std::set<std::string> states_;
};

}  // namespace

Bytes PlanSummary::peak() const {
  Bytes sum;
  for (const DeviceSummary& device : devices) {
    sum += Bytes(static_cast<double>(device.footprint.total()));
  }
  return sum;
}

PlanSummary summarize(const StepPlan& step, std::span<const Target> targets) {
  return Summary(step, targets).run();
}

}  // namespace halfwatt

#include "engine/passes/delayed_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/ops/delayed_scaling.h"
#include "engine/ops/matmul.h"

namespace halfwatt {
namespace {

bool observes(const Node& node) {
  return node.op == Op::matmul && node.attributes.flag("observe");
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(&graph) {}

  std::vector<ScaledOperand> run() {
    for (int id = 0; id < graph_->size(); ++id) {
      const Node& node = graph_->node(id);
      const auto scales =
          observes(node) ? matmul_inputs(node).scales : std::optional<std::size_t>();
      for (const int side : {0, 1}) {
        if (scales) {
          see(node, side, node.inputs[*scales + static_cast<std::size_t>(side)],
              {id, 1 + side});
        }
      }
    }
    return std::move(all_);
  }

 private:
  void see(const Node& node, int side, Value scale, Value amax) {
    const Node& read = graph_->node(scale.node);
    const Value operand = node.inputs[static_cast<std::size_t>(side)];
    if (read.op != Op::read || !seen_.insert({operand, scale}).second) {
      return;
    }
    const std::string& state = read.attributes.word("state");
    auto found = std::find_if(all_.begin(), all_.end(),
                              [&](const ScaledOperand& each) { return each.scale == state; });
    if (found == all_.end()) {
      const DType format = node.attributes.dtype(side == 0 ? "math_a" : "math_b");
      all_.push_back({state,
                      {{"format", format},
                       {"margin", node.attributes.integer("margin")},
                       {"algorithm", node.attributes.word("algorithm")}},
                      {}});
      found = all_.end() - 1;
    }
    found->amax.push_back(amax);
  }

  const Graph* graph_;
  std::set<std::pair<Value, Value>> seen_;  // what is rounded, and its scale
  std::vector<ScaledOperand> all_;
};

// "blocks.0.mlp.fc1.input"
std::string operand_of(const std::string& scale) { return scale.substr(0, scale.rfind('.')); }

}  // namespace

std::vector<ScaledOperand> scaled_operands(const Graph& graph) { return Finder(graph).run(); }

Value observed_history(Builder& build, const ScaledOperand& operand) {
  const StateSpec state = *build.graph().state(fp8_history_of(operand.scale));
  build.set_name(state.of);
  std::vector<Value> inputs = {build.read(state)};
  inputs.insert(inputs.end(), operand.amax.begin(), operand.amax.end());
  return build.add(Op::observe_amax, std::move(inputs));
}

void rescale(Builder& build, const ScaledOperand& operand, Value history, Value skip) {
  const StateSpec state = *build.graph().state(operand.scale);
  build.set_name(state.of);
  const Value after = build.add(Op::rescale, {history, build.read(state), skip}, operand.how);
  build.write(fp8_history_of(operand.scale), after);
  build.write(operand.scale, Builder::output(after, 1));
  build.graph().set_result(fmt::format("{}{}", kAmax, operand_of(operand.scale)),
                           Builder::output(after, 2));
}

void observe_all(Graph& graph) {
  Builder build(graph);
  build.set_phase(Phase::update);
  const int size = graph.size();
  for (int id = 0; id < size; ++id) {
    if (!observes(graph.node(id))) {
      continue;
    }
    const std::string layer = graph.node(id).name;
    build.set_name(layer);
    build.set_device(graph.node(id).device);
    for (const auto operand : {Fp8Operand::input, Fp8Operand::weight}) {
      const std::string history = fp8_history_name(layer, operand);
      const Value before =
          build.read({history, StateRole::statistics, {DType::f32, Shape{1}}, {}, 0});
      const Value amax{id, operand == Fp8Operand::input ? 1 : 2};
      build.write(history, build.add(Op::observe_amax, {before, amax}));
    }
  }
}

void drop_unread_magnitudes(Graph& graph) {
  std::set<int> read;
  const auto see = [&](Value value) {
    if (value.output > 0) {
      read.insert(value.node);
    }
  };
  for (const Node& node : graph.nodes()) {
    std::for_each(node.inputs.begin(), node.inputs.end(), see);
  }
  for (const GraphResult& result : graph.results()) {
    see(result.value);
  }
  for (int id = 0; id < graph.size(); ++id) {
    Node& node = graph.node(id);
    if (!observes(node) || read.count(id) > 0) {
      continue;
    }
    Attributes others;
    for (const auto& [key, value] : node.attributes.entries()) {
      if (key != "observe") {
        others.set(key, value);
      }
    }
    node.attributes = std::move(others);
    node.outputs.resize(1);
  }
}

}  // namespace halfwatt

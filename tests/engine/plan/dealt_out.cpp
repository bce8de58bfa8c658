#include <map>

#include "base/rng.h"
#include "engine/ops/builder.h"
#include "engine/plan/random_graph.h"

namespace halfwatt {
namespace {

class Deal {
 public:
  Deal(const Graph& from, int devices, std::uint64_t seed)
      : from_(&from), devices_(devices), build_(graph_), rng_(seed) {}

  Graph run() {
    for (const StateSpec& state : from_->states()) {
      graph_.declare(state);
      homes_[state.name] = any_device();
    }
    for (int id = 0; id < from_->size(); ++id) {
      const Node& node = from_->node(id);
      const int device = device_of(node);
      std::vector<Value> inputs;
      for (const Value input : node.inputs) {
        inputs.push_back(
            on(device, {now_[static_cast<std::size_t>(input.node)], input.output}));
      }
      build_.set_device(device);
      build_.set_name(node.name);
      build_.set_phase(node.phase);
      now_.push_back(build_.add(node.op, inputs, node.attributes).node);
    }
    for (const GraphResult& result : from_->results()) {
      const int node = now_[static_cast<std::size_t>(result.value.node)];
      graph_.set_result(result.name, {node, result.value.output});
    }
    return std::move(graph_);
  }

 private:
  int any_device() {
    return static_cast<int>(rng_.next() % static_cast<std::uint64_t>(devices_));
  }

  int device_of(const Node& node) {
    if (node.op == Op::read || node.op == Op::write) {
      return homes_.at(node.attributes.word("state"));
    }
    if (!node.inputs.empty() && rng_.uniform() < 0.5) {
      return graph_.node(now_[static_cast<std::size_t>(node.inputs[0].node)]).device;
    }
    return any_device();
  }

  Value on(int device, Value value) {
    const int from = graph_.node(value.node).device;
    if (from == device) {
      return value;
    }
    const auto [place, is_new] = copies_.try_emplace({value, device});
    if (is_new) {
      build_.set_device(device);
      build_.set_phase(graph_.node(value.node).phase);
      place->second =
          build_.add(Op::transfer, {value}, {{"from", static_cast<std::int64_t>(from)}});
    }
    return place->second;
  }

  const Graph* from_;
  int devices_;
  Graph graph_;
  Builder build_;
  Rng rng_;
  std::map<std::string, int> homes_;
  std::vector<int> now_;
  std::map<std::pair<Value, int>, Value> copies_;
};

}  // namespace

Graph dealt_out(const Graph& graph, int devices, std::uint64_t seed) {
  return Deal(graph, devices, seed).run();
}

}  // namespace halfwatt

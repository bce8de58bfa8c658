#include "engine/passes/meaning.h"

#include <functional>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

class Meanings {
 public:
  explicit Meanings(const Graph& graph) : graph_(&graph) {}

  std::string of(Value value) {
    while (graph_->node(value.node).op == Op::transfer) {
      value = graph_->node(value.node).inputs[0];
    }
    return std::to_string(hash(value.node)) + "." + std::to_string(value.output);
  }

 private:
  std::size_t hash(int id) {
    if (const auto found = known_.find(id); found != known_.end()) {
      return found->second;
    }
    const Node& node = graph_->node(id);
    std::string all = std::string(name_of(node.op)) + " " + text(node.attributes);
    for (const Value input : node.inputs) {
      all += " " + of(input);
    }
    for (const TensorType& output : node.outputs) {
      all += " " + text(output);
    }
    return known_[id] = std::hash<std::string>()(all);
  }

  const Graph* graph_;
  std::map<int, std::size_t> known_;
};

}  // namespace

std::map<std::string, std::string> meanings(const Graph& graph) {
  Meanings meanings(graph);
  std::map<std::string, std::string> all;
  for (const GraphResult& result : graph.results()) {
    all["result " + result.name] = meanings.of(result.value);
  }
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::write) {
      all["state " + node.attributes.word("state")] = meanings.of(node.inputs[0]);
    }
  }
  return all;
}

}  // namespace halfwatt

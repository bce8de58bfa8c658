#include "engine/passes/recompute.h"

#include <map>
#include <string_view>

#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

// "blocks.3" of "blocks.3.attn.qkv"; empty outside of blocks.
std::string_view block_of(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (name.substr(0, kBlocks.size()) != kBlocks) {
    return {};
  }
  return name.substr(0, name.find('.', kBlocks.size()));
}

class Recomputer {
 public:
  explicit Recomputer(const Graph& from) : from_(&from), rewrite_(from) {}

  Graph run() {
    for (const StateSpec& state : from_->states()) {
      rewrite_.graph().declare(state);
    }
    for (int id = 0; id < from_->size(); ++id) {
      const Node& node = from_->node(id);
      if (node.phase == Phase::backward && !node.inputs.empty()) {
        rewrite_.map(id, copy(node, block_of(node.name)));
      } else {
        rewrite_.copy(id);
      }
    }
    return rewrite_.finish();
  }

 private:
  Value copy(const Node& node, std::string_view block) {
    std::vector<Value> inputs;
    inputs.reserve(node.inputs.size());
    for (const Value input : node.inputs) {
      inputs.push_back(block.empty() ? rewrite_.now(input) : again(input, block));
    }
    rewrite_.follow(node);
    rewrite_.build().set_phase(Phase::backward);
    return rewrite_.build().add(node.op, std::move(inputs), node.attributes);
  }

  // What a backward node of `block` is given for `old`: another block's value is the input of
  // this one, and kept.
  Value again(Value old, std::string_view block) {
    const Node& node = from_->node(old.node);
    const bool source = definition(node.op).numeric == NumericClass::source;
    if (node.phase != Phase::forward || source || block_of(node.name) != block) {
      return rewrite_.now(old);
    }
    auto found = again_.find(old.node);
    if (found == again_.end()) {
      found = again_.emplace(old.node, copy(node, block).node).first;
    }
    return {found->second, old.output};
  }

  const Graph* from_;
  Rewrite rewrite_;
  std::map<int, int> again_;  // by old node: the one that computes it a second time
};

}  // namespace

Graph with_recompute(const Graph& graph) { return without_dead_nodes(Recomputer(graph).run()); }

}  // namespace halfwatt

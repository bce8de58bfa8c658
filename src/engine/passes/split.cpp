#include "engine/passes/split.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

class Splitter {
 public:
  Splitter(const Graph& from, const Devices& devices)
      : from_(&from), devices_(&devices), build_(graph_) {
    for (const GraphResult& result : from.results()) {
      shown_.insert(result.value.node);
    }
  }

  Graph run() {
    for (const StateSpec& state : from_->states()) {
      graph_.declare(state);
    }
    for (int id = 0; id < from_->size(); ++id) {
      const Node& node = from_->node(id);
      phase_ = node.phase;
      if (!goes_along(node)) {
        make(id, chosen(id));
      } else if (shown_.count(id) != 0) {
        on({id, 0}, root_device(id, 0));
      }
    }
    for (const GraphResult& result : from_->results()) {
      const int device = root_of_.at(result.value.node);
      graph_.set_result(result.name, values_.at({result.value, device}));
    }
    return std::move(graph_);
  }

 private:
  int home(const std::string& name) const {
    const StateSpec& state = *from_->state(name);
    const auto found = devices_->homes.find(state.of.empty() ? state.name : state.of);
    return found == devices_->homes.end() ? devices_->shared : found->second;
  }

  int chosen(int id) const {
    const Node& node = from_->node(id);
    return node.op == Op::write ? home(node.attributes.word("state"))
                                : devices_->of_nodes[static_cast<std::size_t>(id)];
  }

  // Where a value comes from, if `device` is the first to ask for what is at its root.
  int root_device(int id, int device) const {
    while (from_->node(id).op == Op::reshape || from_->node(id).op == Op::cast) {
      id = from_->node(id).inputs[0].node;
    }
    const Node& node = from_->node(id);
    if (node.op == Op::read) {
      return home(node.attributes.word("state"));
    }
    if (node.op == Op::input || node.op == Op::constant) {
      const auto first = root_of_.find(id);
      return first == root_of_.end() ? device : first->second;
    }
    return chosen(id);
  }

  bool supports(int device, int id) const {
    const auto& asked = devices_->targets[static_cast<std::size_t>(device)].support;
    return !asked || asked(*from_, id).kind != Support::Kind::refused;
  }

  // Where `id` is made if `device` needs it.
  int made_on(int id, int device) const {
    const Node& node = from_->node(id);
    const int root = root_device(id, device);
    if (node.op == Op::reshape) {
      return device;
    }
    if (node.op != Op::cast) {
      return root;
    }
    const Value input = node.inputs[0];
    const bool narrows = node.outputs[0].bytes() < from_->node(input.node).outputs[0].bytes();
    const bool is_there = values_.count({input, device}) != 0;
    const int wished = narrows && !is_there ? root : device;
    return supports(wished, id) ? wished : wished == root ? device : root;
  }

  void make(int id, int device) {
    const Node& node = from_->node(id);
    std::vector<Value> inputs;
    inputs.reserve(node.inputs.size());
    for (const Value input : node.inputs) {
      inputs.push_back(on(input, device));
    }
    at(node.name, device);
    const Value made = build_.add(node.op, std::move(inputs), node.attributes);
    for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
      values_.emplace(std::pair{Value{id, output}, device}, Value{made.node, output});
    }
    root_of_.emplace(id, device);
  }

  Value on(Value old, int device) {
    if (const auto found = values_.find({old, device}); found != values_.end()) {
      return found->second;
    }
    const int there = made_on(old.node, device);
    if (values_.count({old, there}) == 0) {
      HALFWATT_CHECK(goes_along(from_->node(old.node)), "a value that is made in its place");
      make(old.node, there);
    }
    const Value made = values_.at({old, there});
    if (there == device) {
      return made;
    }
    at(from_->node(old.node).name, device);
    const Value moved =
        build_.add(Op::transfer, {made}, {{"from", static_cast<std::int64_t>(there)}});
    values_.emplace(std::pair{old, device}, moved);
    return moved;
  }

  // What is made on demand belongs to the phase of who needs it.
  void at(const std::string& name, int device) {
    build_.set_name(name);
    build_.set_phase(phase_);
    build_.set_device(device);
  }

  const Graph* from_;
  const Devices* devices_;
  Graph graph_;
  Builder build_;
  Phase phase_ = Phase::forward;
  std::set<int> shown_;                            // nodes of results
  std::map<std::pair<Value, int>, Value> values_;  // by old value and device
  std::map<int, int> root_of_;                     // by old node: where it was made first
};

}  // namespace

bool goes_along(const Node& node) {
  switch (node.op) {
    case Op::input:
    case Op::constant:
    case Op::read:
    case Op::reshape:
    case Op::cast:
      return true;
    default:
      return false;
  }
}

Graph split(const Graph& graph, const Devices& devices) {
  const auto& all = devices.of_nodes;
  const bool one = devices.shared == 0 &&
                   std::all_of(all.begin(), all.end(), [](int each) { return each == 0; }) &&
                   std::all_of(devices.homes.begin(), devices.homes.end(),
                               [](const auto& each) { return each.second == 0; });
  return one ? graph : Splitter(graph, devices).run();
}

}  // namespace halfwatt

#include "engine/ops/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

using Verdict = Result<void>;

// 1. Inputs come before the node that uses them, and are outputs that exist.
Verdict inputs_exist(const Graph& graph, int id) {
  for (const Value input : graph.node(id).inputs) {
    if (input.node < 0 || input.node >= id) {
      return bad_input(fmt::format("input %{} does not come before it", input.node));
    }
    const std::size_t outputs = graph.node(input.node).outputs.size();
    if (input.output < 0 || static_cast<std::size_t>(input.output) >= outputs) {
      return bad_input(fmt::format("%{} has no output {}", input.node, input.output));
    }
  }
  return {};
}

// 2. As many inputs as the op takes, and outputs as its rule says of them.
Verdict types_follow(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  const OpDef& row = definition(node.op);
  if (node.inputs.size() < row.fewest_inputs || node.inputs.size() > row.most_inputs) {
    return bad_input(fmt::format("{} inputs, needs {} to {}", node.inputs.size(),
                                 row.fewest_inputs, row.most_inputs));
  }
  const auto outputs = row.outputs(node, input_types(graph, node));
  if (!outputs) {
    return outputs.error();
  }
  if (*outputs != node.outputs) {
    return bad_input("its outputs are not what its op gives of its inputs");
  }
  return {};
}

// 3. Reading and writing nodes name a state of the graph, and have its type.
Verdict state_is_declared(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  if (node.op != Op::read && node.op != Op::write) {
    return {};
  }
  const std::string& name = node.attributes.word("state");
  const StateSpec* state = graph.state(name);
  if (!state) {
    return bad_input(fmt::format("state {} is not declared", name));
  }
  const TensorType& type = node.op == Op::read ? node.outputs[0] : graph.type(node.inputs[0]);
  if (!(type == state->type)) {
    return bad_input(
        fmt::format("{} for state {}, needs {}", text(type), name, text(state->type)));
  }
  return {};
}

// 4. Inputs of one node are on its device, but for those of a transfer.
Verdict device_is_one(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  for (const Value input : node.inputs) {
    if (node.op != Op::transfer && graph.node(input.node).device != node.device) {
      return bad_input(fmt::format("input %{} is on device {}, the node on {}", input.node,
                                   graph.node(input.node).device, node.device));
    }
  }
  return {};
}

// 5. Forward nodes do not depend on backward ones, nor these on the update.
Verdict phases_follow(const Graph& graph, int id) {
  for (const Value input : graph.node(id).inputs) {
    if (graph.node(input.node).phase > graph.node(id).phase) {
      return bad_input(fmt::format("{}, depends on %{}, which is {}",
                                   text(graph.node(id).phase), input.node,
                                   text(graph.node(input.node).phase)));
    }
  }
  return {};
}

// 6. A state is on one device, is read by one node and written by one at most, and what was
// read is used by nobody after that: then, and only then, it can be overwritten where it lies.
class StateUse {
 public:
  explicit StateUse(const Graph& graph) : shown_(static_cast<std::size_t>(graph.size())) {}

  Verdict see(const Graph& graph, int id) {
    const Node& node = graph.node(id);
    for (const Value input : node.inputs) {
      const std::string& shown = shown_[static_cast<std::size_t>(input.node)];
      if (!shown.empty() && written_.count(shown) != 0) {
        return bad_input(fmt::format("uses state {}, which was written before", shown));
      }
    }
    if (node.op == Op::reshape) {
      shown_[static_cast<std::size_t>(id)] =
          shown_[static_cast<std::size_t>(node.inputs[0].node)];
    }
    if (node.op != Op::read && node.op != Op::write) {
      return {};
    }
    const std::string& name = node.attributes.word("state");
    if (const auto [home, is_new] = homes_.try_emplace(name, node.device);
        !is_new && home->second != node.device) {
      return bad_input(fmt::format("state {} is on device {}, the node on {}", name,
                                   home->second, node.device));
    }
    if (written_.count(name) != 0) {
      return bad_input(fmt::format("state {} was written before", name));
    }
    if (node.op == Op::write) {
      written_.insert(name);
    } else if (!read_.insert(name).second) {
      return bad_input(fmt::format("state {} is read twice", name));
    } else {
      shown_[static_cast<std::size_t>(id)] = name;
    }
    return {};
  }

  // 9. A result is not what a state was before it is written: it would be overwritten.
  Verdict results_last(const Graph& graph) const {
    for (const GraphResult& result : graph.results()) {
      const std::string& shown = shown_[static_cast<std::size_t>(result.value.node)];
      if (written_.count(shown) != 0) {
        return bad_input(
            fmt::format("result {} is state {} before it is written", result.name, shown));
      }
    }
    return {};
  }

 private:
  std::map<std::string, int> homes_;
  std::set<std::string> read_;
  std::set<std::string> written_;
  std::vector<std::string> shown_;  ///< by node: the state whose memory its value is
};

// 7. Graph inputs have one name each.
class InputNames {
 public:
  Verdict see(const Node& node) {
    if (node.op == Op::input && !names_.insert(node.attributes.word("input")).second) {
      return bad_input(fmt::format("a second input {}", node.attributes.word("input")));
    }
    return {};
  }

 private:
  std::set<std::string> names_;
};

// 8. Results are outputs that exist.
Verdict results_exist(const Graph& graph) {
  for (const GraphResult& result : graph.results()) {
    const Value value = result.value;
    if (value.node < 0 || value.node >= graph.size() || value.output < 0 ||
        static_cast<std::size_t>(value.output) >= graph.node(value.node).outputs.size()) {
      return bad_input(fmt::format("result {} is no output of a node", result.name));
    }
  }
  return {};
}

Error at_node(const Graph& graph, int id, const Error& error) {
  const Node& node = graph.node(id);
  return {error.kind, fmt::format("%{} {}{}{}: {}", id, name_of(node.op),
                                  node.name.empty() ? "" : " of ", node.name, error.message)};
}

}  // namespace

Result<void> verify(const Graph& graph) {
  StateUse states(graph);
  InputNames inputs;
  for (int id = 0; id < graph.size(); ++id) {
    for (const auto rule :
         {inputs_exist, types_follow, state_is_declared, device_is_one, phases_follow}) {
      if (const Verdict legal = rule(graph, id); !legal) {
        return at_node(graph, id, legal.error());
      }
    }
    if (const Verdict legal = states.see(graph, id); !legal) {
      return at_node(graph, id, legal.error());
    }
    if (const Verdict legal = inputs.see(graph.node(id)); !legal) {
      return at_node(graph, id, legal.error());
    }
  }
  if (Verdict legal = results_exist(graph); !legal) {
    return legal;
  }
  return states.results_last(graph);
}

}  // namespace halfwatt

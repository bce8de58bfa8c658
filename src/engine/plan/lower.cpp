#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"
#include "engine/ops/op_def.h"
#include "engine/plan/memory.h"
#include "engine/plan/plan.h"
#include "engine/plan/schedule.h"

namespace halfwatt {
namespace {

Result<void> check_support(const Graph& graph, std::span<const Target> targets) {
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    HALFWATT_CHECK(static_cast<std::size_t>(node.device) < targets.size(),
                   "a device that the plan has");
    const Target& target = targets[static_cast<std::size_t>(node.device)];
    const Support support = target.support ? target.support(graph, id) : Support{};
    if (support.kind == Support::Kind::refused) {
      return bad_input(fmt::format(
          "%{} {} of {}: {} does not compute it: {}", id, name_of(node.op),
          node.name.empty() ? "the graph" : node.name, target.id.text(), support.reason));
    }
  }
  return {};
}

std::vector<std::size_t> workspaces(const Graph& graph, std::span<const Target> targets) {
  std::vector<std::size_t> bytes(static_cast<std::size_t>(graph.size()));
  for (int id = 0; id < graph.size(); ++id) {
    const Target& target = targets[static_cast<std::size_t>(graph.node(id).device)];
    if (is_step(graph.node(id)) && target.workspace) {
      bytes[static_cast<std::size_t>(id)] = target.workspace(graph, id);
    }
  }
  return bytes;
}

class Lowering {
 public:
  Lowering(const Graph& graph, std::span<const Target> targets)
      : memory_(place(graph, workspaces(graph, targets), static_cast<int>(targets.size()))) {
    plan_.graph = graph;
    plan_.devices.resize(targets.size());
    const auto& nodes = graph.nodes();
    const bool changes_states = std::any_of(
        nodes.begin(), nodes.end(), [](const Node& node) { return node.op == Op::write; });
    for (const Target& target : targets) {
      feeds_ahead_.push_back(changes_states && target.feeds_ahead);
    }
  }

  Plan run() {
    bind();
    steps();
    for (std::size_t device = 0; device < plan_.devices.size(); ++device) {
      plan_.devices[device].arena = memory_.arenas[device];
      plan_.devices[device].numbers = memory_.numbers[device];
    }
    for (const GraphResult& result : plan_.graph.results()) {
      plan_.results.push_back({result.name, memory_.values.at(result.value),
                               plan_.graph.node(result.value.node).device});
    }
    return std::move(plan_);
  }

 private:
  void bind() {
    std::vector<int> home(plan_.graph.states().size(), -1);
    for (const Node& node : plan_.graph.nodes()) {
      if (node.op == Op::input) {
        plan_.devices[static_cast<std::size_t>(node.device)].inputs.push_back(
            static_cast<int>(plan_.inputs.size()));
        plan_.inputs.push_back({node.attributes.word("input"), node.outputs[0], node.device,
                                feeds_ahead_[static_cast<std::size_t>(node.device)]});
      }
      if (node.op == Op::read || node.op == Op::write) {
        home[index_of(node.attributes.word("state"))] = node.device;
      }
    }
    for (std::size_t state = 0; state < home.size(); ++state) {
      if (home[state] >= 0) {
        plan_.devices[static_cast<std::size_t>(home[state])].states.push_back(
            static_cast<int>(state));
      }
    }
  }

  std::size_t index_of(const std::string& state) const {
    const auto& states = plan_.graph.states();
    return static_cast<std::size_t>(
        std::find_if(states.begin(), states.end(),
                     [&](const StateSpec& each) { return each.name == state; }) -
        states.begin());
  }

  void steps() {
    at_.resize(static_cast<std::size_t>(plan_.graph.size()));
    for (int id = 0; id < plan_.graph.size(); ++id) {
      const Node& node = plan_.graph.node(id);
      const bool nothing = memory_.is_in_place[static_cast<std::size_t>(id)];
      if (is_step(node) && !nothing) {
        add_step(id, node);
      }
    }
  }

  void add_step(int id, const Node& node) {
    auto& steps = plan_.devices[static_cast<std::size_t>(node.device)].steps;
    Step step;
    step.node = id;
    for (const Value input : node.inputs) {
      step.inputs.push_back(memory_.values.at(input));
      wait_for_producer(step, node, input);
    }
    for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
      step.outputs.push_back(memory_.values.at({id, output}));
    }
    if (node.op == Op::write) {
      const std::size_t state = index_of(node.attributes.word("state"));
      step.outputs.push_back(
          {Place::Space::state, 0, static_cast<int>(state), plan_.graph.states()[state].type});
    }
    step.workspace = memory_.workspaces[static_cast<std::size_t>(id)];
    wait_for_readers(step, node);
    note_transfer(node, static_cast<int>(steps.size()));
    at_[static_cast<std::size_t>(id)] = {node.device, static_cast<int>(steps.size())};
    steps.push_back(std::move(step));
  }

  // A transfer is carried out by the device that it goes to.
  void wait_for_producer(Step& step, const Node& node, Value input) {
    int producer = input.node;
    while (plan_.graph.node(producer).op == Op::reshape) {
      producer = plan_.graph.node(producer).inputs[0].node;
    }
    const Node& from = plan_.graph.node(producer);
    if (from.device != node.device && is_step(from)) {
      add_wait(step, at_[static_cast<std::size_t>(producer)]);
    }
  }

  // What is copied out of a state to another device must be out before the state changes.
  void wait_for_readers(Step& step, const Node& node) {
    for (const Place& output : step.outputs) {
      if (output.space != Place::Space::state) {
        continue;
      }
      for (const auto& [state, transfer] : transfers_) {
        if (state == output.index && transfer.device != node.device) {
          add_wait(step, transfer);
        }
      }
    }
  }

  void note_transfer(const Node& node, int step) {
    if (node.op != Op::transfer) {
      return;
    }
    const Place& from = memory_.values.at(node.inputs[0]);
    if (from.space == Place::Space::state) {
      transfers_.push_back({from.index, {node.device, step}});
    }
  }

  static void add_wait(Step& step, Wait wait) {
    if (std::find(step.waits.begin(), step.waits.end(), wait) == step.waits.end()) {
      step.waits.push_back(wait);
    }
  }

  Memory memory_;
  Plan plan_;
  std::vector<bool> feeds_ahead_;                // by device
  std::vector<Wait> at_;                         // by node: its device and step
  std::vector<std::pair<int, Wait>> transfers_;  // out of which state
};

std::size_t& part_of(Footprint& sum, StateRole role) {
  switch (role) {
    case StateRole::parameter:
    case StateRole::copy:
      return sum.parameters;
    case StateRole::moment:
      return sum.moments;
    case StateRole::accumulator:
      return sum.accumulators;
    default:
      return sum.others;
  }
}

}  // namespace

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t PlanInput::bytes() const { return aligned(type.bytes()) * (fed_ahead ? 2 : 1); }

Result<Plan> lower(const Graph& graph, std::span<const Target> targets) {
  if (const auto supported = check_support(graph, targets); !supported) {
    return supported.error();
  }
  return Lowering(graph, targets).run();
}

Footprint footprint(const Plan& plan, int device) {
  const Plan* const one = &plan;
  return shared_footprint({&one, 1}, device);
}

Footprint shared_footprint(std::span<const Plan* const> plans, int device) {
  Footprint sum;
  std::set<std::string> seen;
  for (const Plan* plan : plans) {
    const DevicePlan& here = plan->devices[static_cast<std::size_t>(device)];
    for (const int index : here.states) {
      const StateSpec& state = plan->graph.states()[static_cast<std::size_t>(index)];
      if (seen.insert(state.name).second) {
        part_of(sum, state.role) += aligned(state.type.bytes());
      }
    }
    for (const int input : here.inputs) {
      sum.inputs += plan->inputs[static_cast<std::size_t>(input)].bytes();
    }
    sum.arena = std::max(sum.arena, here.arena);
    for (const Step& step : here.steps) {
      sum.largest_workspace = std::max(sum.largest_workspace, step.workspace.type.bytes());
    }
  }
  return sum;
}

}  // namespace halfwatt

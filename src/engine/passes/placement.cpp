#include "engine/passes/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/ops/op_def.h"
#include "engine/passes/precision.h"
#include "engine/passes/split.h"

namespace halfwatt {
namespace {

std::optional<DType> computes_in(const Node& node) {
  if (node.attributes.has("math_a")) {
    return node.attributes.dtype("math_a");
  }
  const bool floats = !node.outputs.empty() && is_float(node.outputs[0].dtype);
  return floats ? std::optional(node.outputs[0].dtype) : std::nullopt;
}

bool applies(const PlacementRule& rule, const Node& node) {
  if (rule.dtypes.empty()) {
    return covers(rule.what, node.name);
  }
  const auto dtype = computes_in(node);
  return dtype &&
         std::find(rule.dtypes.begin(), rule.dtypes.end(), *dtype) != rule.dtypes.end();
}

class Assignment {
 public:
  Assignment(const Graph& graph, std::span<const Target> targets)
      : graph_(&graph), targets_(targets), devices_(static_cast<std::size_t>(graph.size())) {}

  Result<void> follow(std::span<const PlacementRule> rules) {
    for (const PlacementRule& rule : rules) {
      const auto target = std::find_if(targets_.begin(), targets_.end(),
                                       [&](const Target& t) { return t.name == rule.target; });
      if (target == targets_.end()) {
        return bad_input(fmt::format("--place {}={}: no device {}; there are {}", rule.what,
                                     rule.target, rule.target, names()));
      }
      bool any = false;
      for (int id = 0; id < graph_->size(); ++id) {
        const Node& node = graph_->node(id);
        if (node.phase != Phase::update && !goes_along(node) && applies(rule, node)) {
          device(id) = static_cast<int>(target - targets_.begin());
          any = true;
        }
      }
      if (!any) {
        return bad_input(fmt::format("--place {}={}: {}", rule.what, rule.target,
                                     rule.dtypes.empty()
                                         ? "no layer is called so; `halfwatt plan "
                                           "--print-after precision` lists them"
                                         : "nothing computes in this precision"));
      }
    }
    return {};
  }

  // Parameters are where forward nodes first use them.
  void find_homes(Homes& homes) const {
    for (int id = 0; id < graph_->size(); ++id) {
      const Node& node = graph_->node(id);
      if (node.phase == Phase::forward && !goes_along(node)) {
        for (const Value input : node.inputs) {
          if (const std::string parameter = parameter_of(input); !parameter.empty()) {
            homes.emplace(parameter, devices_[static_cast<std::size_t>(id)]);
          }
        }
      }
    }
  }

  void follow_homes(const Homes& homes, int shared) {
    for (int id = 0; id < graph_->size(); ++id) {
      const Node& node = graph_->node(id);
      if (node.phase == Phase::update && !goes_along(node)) {
        const auto home = homes.find(node.name);
        device(id) = home == homes.end() ? shared : home->second;
      }
    }
  }

  Result<void> ask_targets(Phase first, Phase last) {
    for (int id = 0; id < graph_->size(); ++id) {
      const Node& node = graph_->node(id);
      if (goes_along(node) || node.op == Op::write || node.phase < first || node.phase > last) {
        continue;
      }
      if (const auto moved = move_if_refused(id); !moved) {
        return moved;
      }
    }
    return {};
  }

  const std::vector<int>& devices() const { return devices_; }

  // One line for all nodes of an op that moved for one reason.
  std::vector<std::string> remarks() const {
    std::vector<std::string> lines;
    for (const auto& [why, nodes] : moved_) {
      const std::string more =
          nodes.size() == 1 ? "" : fmt::format(" and {} more", nodes.size() - 1);
      lines.push_back(fmt::format("{}{}: {}", nodes.front(), more, why));
    }
    return lines;
  }

 private:
  int& device(int id) { return devices_[static_cast<std::size_t>(id)]; }

  std::string names() const {
    std::string all;
    for (const Target& target : targets_) {
      all += fmt::format("{}{}", all.empty() ? "" : ", ", target.name);
    }
    return all;
  }

  // The parameter that a value is, itself or by a copy, whatever its shape; empty if none.
  std::string parameter_of(Value value) const {
    while (graph_->node(value.node).op == Op::reshape ||
           graph_->node(value.node).op == Op::cast) {
      value = graph_->node(value.node).inputs[0];
    }
    const Node& node = graph_->node(value.node);
    if (node.op != Op::read) {
      return {};
    }
    const StateSpec* state = graph_->state(node.attributes.word("state"));
    return state->role == StateRole::parameter ? state->name
           : state->role == StateRole::copy    ? state->of
                                               : std::string();
  }

  std::optional<std::string> refusal(std::size_t target, int id) const {
    const auto& asked = targets_[target].support;
    const Support support = asked ? asked(*graph_, id) : Support{};
    return support.kind == Support::Kind::refused ? std::optional(support.reason)
                                                  : std::nullopt;
  }

  Result<void> move_if_refused(int id) {
    const Node& node = graph_->node(id);
    const auto wanted = static_cast<std::size_t>(device(id));
    const auto why = refusal(wanted, id);
    if (!why) {
      return {};
    }
    for (std::size_t other = 0; other < targets_.size(); ++other) {
      if (other != wanted && !refusal(other, id)) {
        device(id) = static_cast<int>(other);
        moved_[fmt::format("on {}, as {} does not compute it: {}", targets_[other].name,
                           targets_[wanted].name, *why)]
            .push_back(fmt::format("{} of {}", name_of(node.op), node.name));
        return {};
      }
    }
    return bad_input(fmt::format("{} of {}: {} does not compute it: {}{}", name_of(node.op),
                                 node.name.empty() ? "the graph" : node.name,
                                 targets_[wanted].name, *why,
                                 targets_.size() > 1 ? "; nor does another device" : ""));
  }

  const Graph* graph_;
  std::span<const Target> targets_;
  std::vector<int> devices_;  // by node
  std::map<std::string, std::vector<std::string>> moved_;
};

// The device with most bytes of parameters: all gradients are checked there, so that fewest go
// to another.
int shared_home(const Graph& graph, const Homes& homes, std::size_t devices) {
  std::vector<std::size_t> bytes(devices);
  for (const auto& [parameter, device] : homes) {
    if (const StateSpec* state = graph.state(parameter)) {
      bytes[static_cast<std::size_t>(device)] += state->type.bytes();
    }
  }
  return static_cast<int>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

}  // namespace

Result<Placed> with_placement(const Graph& graph,
                              std::span<const PlacementRule> rules,
                              std::span<const Target> targets) {
  HALFWATT_CHECK(!targets.empty(), "a graph is placed on one target at least");
  Assignment assignment(graph, targets);
  if (const auto followed = assignment.follow(rules); !followed) {
    return followed.error();
  }
  if (const auto asked = assignment.ask_targets(Phase::forward, Phase::backward); !asked) {
    return asked.error();
  }
  Homes homes;
  assignment.find_homes(homes);
  const int shared = shared_home(graph, homes, targets.size());
  assignment.follow_homes(homes, shared);
  if (const auto asked = assignment.ask_targets(Phase::update, Phase::update); !asked) {
    return asked.error();
  }
  Graph placed = split(graph, {assignment.devices(), homes, shared, targets});
  return Placed{std::move(placed), std::move(homes), assignment.remarks()};
}

Result<Graph> with_homes(const Graph& update,
                         const Homes& homes,
                         std::span<const Target> targets) {
  Assignment assignment(update, targets);
  const int shared = shared_home(update, homes, targets.size());
  assignment.follow_homes(homes, shared);
  if (const auto asked = assignment.ask_targets(Phase::update, Phase::update); !asked) {
    return asked.error();
  }
  return split(update, {assignment.devices(), homes, shared, targets});
}

}  // namespace halfwatt

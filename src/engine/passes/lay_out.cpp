#include "engine/passes/lay_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/passes/precision.h"
#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

class LayOut {
 public:
  LayOut(const Graph& graph, std::span<const Target> targets)
      : from_(&graph), targets_(targets), rewrite_(graph) {
    for (int id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      for (const Value input : node.inputs) {
        users_[input].push_back(id);
      }
      if (node.op == Op::write) {
        written_.insert(node.attributes.word("state"));
      }
    }
    for (const GraphResult& result : graph.results()) {
      users_[result.value].push_back(-1);  // somebody, and no node
    }
  }

  Graph run() {
    for (int id = 0; id < from_->size(); ++id) {
      if (done_.count(id) == 0 && !is_left_out(id) && !lay_out(id)) {
        rewrite_.copy(id);
      }
    }
    return rewrite_.finish();
  }

 private:
  // The panels in which the weights of a product can lie.
  std::optional<Panels> panels_of(const Node& node) const {
    static const std::set<std::string_view> kPlain = {"transpose_b"};
    if (node.op != Op::matmul || !node.attributes.flag("transpose_b")) {
      return std::nullopt;
    }
    for (const auto& [key, value] : node.attributes.entries()) {
      if (kPlain.count(key) == 0) {
        return std::nullopt;
      }
    }
    const Node& weights = from_->node(node.inputs[1].node);
    const auto& liked = targets_[static_cast<std::size_t>(node.device)].panels;
    const TensorType& type = weights.outputs[0];
    if (!liked || weights.op != Op::read || type.shape.rank() != 2 ||
        written_.count(weights.attributes.word("state")) > 0) {
      return std::nullopt;
    }
    return liked(type.dtype, type.shape);
  }

  // A read of weights that only products see which read their panels instead.
  bool is_left_out(int id) const {
    const auto users = users_.find({id, 0});
    return from_->node(id).op == Op::read && users != users_.end() &&
           std::all_of(users->second.begin(), users->second.end(), [&](int user) {
             return user >= 0 && from_->node(user).inputs.size() > 1 &&
                    from_->node(user).inputs[1] == Value{id, 0} &&
                    from_->node(user).inputs[0] != Value{id, 0} && panels_of(from_->node(user));
           });
  }

  // The GELU that alone reads what `id` computes.
  std::optional<int> gelu_of(int id) const {
    const auto found = users_.find({id, 0});
    if (found == users_.end() || found->second.size() != 1 || found->second[0] < 0) {
      return std::nullopt;
    }
    const Node& user = from_->node(found->second[0]);
    const bool is_gelu = user.op == Op::gelu && user.device == from_->node(id).device;
    return is_gelu && from_->node(id).inputs.size() == 3 ? std::optional(found->second[0])
                                                         : std::nullopt;
  }

  // A copy of the parameter that the read state is, or is a copy of.
  static StateSpec in_panels(const StateSpec& state, const Panels& panels) {
    const std::string& parameter = state.of.empty() ? state.name : state.of;
    return {fmt::format("{}/{}x{}", copy_name(parameter, state.type.dtype), panels.columns,
                        panels.steps),
            StateRole::copy,
            state.type,
            parameter,
            0,
            panels};
  }

  bool lay_out(int id) {
    const Node& node = from_->node(id);
    const std::optional<Panels> panels = panels_of(node);
    if (!panels) {
      return false;
    }
    const Node& weights = from_->node(node.inputs[1].node);
    const StateSpec& state = *from_->state(weights.attributes.word("state"));
    rewrite_.follow(node);
    std::vector<Value> inputs = {rewrite_.now(node.inputs[0]),
                                 rewrite_.build().read(in_panels(state, *panels))};
    if (node.inputs.size() == 3) {
      inputs.push_back(rewrite_.now(node.inputs[2]));
    }
    Attributes attributes{{"columns", panels->columns}, {"steps", panels->steps}};
    const std::optional<int> gelu = gelu_of(id);
    if (gelu) {
      attributes.set("gelu", true);
    }
    const Value y = rewrite_.build().add(Op::linear, std::move(inputs), std::move(attributes));
    rewrite_.map(id, y);
    if (gelu) {
      rewrite_.map(*gelu, y);
      done_.insert(*gelu);
    }
    return true;
  }

  const Graph* from_;
  std::span<const Target> targets_;
  Rewrite rewrite_;
  std::map<Value, std::vector<int>> users_;
  std::set<std::string> written_;
  std::set<int> done_;
};

}  // namespace

Graph with_panels(const Graph& graph, std::span<const Target> targets) {
  return LayOut(graph, targets).run();
}

}  // namespace halfwatt

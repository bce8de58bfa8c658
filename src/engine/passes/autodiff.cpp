#include "engine/passes/autodiff.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "base/check.h"
#include "base/failure.h"
#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

class Backward {
 public:
  Backward(Graph& graph, const Precision& precision, std::span<const std::string> frozen)
      : graph_(&graph),
        build_(graph),
        precision_(&precision),
        frozen_(frozen),
        forward_(graph.size()) {
    build_.set_phase(Phase::backward);
    find_wanted();
  }

  void run(int micro_batches) {
    const auto loss = graph_->result("loss");
    HALFWATT_CHECK(loss, "a graph whose gradients are wanted has a result `loss`");
    add_to(*loss, seed(*loss, micro_batches));
    for (int id = forward_ - 1; id >= 0; --id) {
      pull_back(id);
    }
    name_gradients();
  }

 private:
  // A node's gradient is wanted if a parameter is before it.
  void find_wanted() {
    wanted_.resize(static_cast<std::size_t>(forward_));
    for (int id = 0; id < forward_; ++id) {
      const Node& node = graph_->node(id);
      bool wanted = node.op == Op::read && is_learned(node);
      for (const Value input : node.inputs) {
        wanted = wanted || is_wanted(input);
      }
      wanted_[static_cast<std::size_t>(id)] = wanted;
    }
  }

  // Scales of formats and the like are read, too, and follow by rules of their own.
  bool is_learned(const Node& read) const {
    const StateSpec& state = *graph_->state(read.attributes.word("state"));
    return (state.role == StateRole::parameter || state.role == StateRole::copy) &&
           !any_names(frozen_, state.role == StateRole::copy ? state.of : state.name);
  }

  bool is_wanted(Value value) const { return wanted_[static_cast<std::size_t>(value.node)]; }

  Value seed(Value loss, int micro_batches) {
    build_.set_name("loss");
    const TensorType type = graph_->type(loss);
    const double part = 1.0 / micro_batches;
    if (precision_->scale == Precision::Scale::none) {
      return build_.constant(part, type);
    }
    const Value scale = build_.read(loss_scale_state());
    const Value seeded =
        micro_batches == 1 ? scale : build_.add(Op::scale, {scale}, {{"factor", part}});
    return build_.cast(seeded, type.dtype);
  }

  void add_to(Value value, Value gradient) {
    const auto [place, is_first] = gradients_.try_emplace(value, gradient);
    if (!is_first) {
      place->second = build_.add(Op::add, {place->second, gradient});
    }
  }

  void pull_back(int id) {
    const Node node = graph_->node(id);  // the graph grows
    std::vector<std::optional<Value>> of_outputs;
    bool any = false;
    for (int at = 0; at < static_cast<int>(node.outputs.size()); ++at) {
      const auto found = gradients_.find({id, at});
      of_outputs.push_back(found == gradients_.end() ? std::nullopt
                                                     : std::optional(found->second));
      any = any || of_outputs.back();
    }
    if (!any || node.inputs.empty() || !wanted_[static_cast<std::size_t>(id)]) {
      return;
    }
    const OpDef& row = definition(node.op);
    for (std::size_t at = 0; at < of_outputs.size(); ++at) {
      // Statistics, sums and the losses of single samples are there for others to see.
      if (of_outputs[at] && (!row.gradient || at > 0)) {
        throw no_gradient(node, "output", at);
      }
    }
    const auto wanted = std::make_unique<bool[]>(node.inputs.size());
    for (std::size_t at = 0; at < node.inputs.size(); ++at) {
      wanted[at] = is_wanted(node.inputs[at]);
    }
    build_.set_name(node.name);
    const InputGradients gradients = row.gradient(
        build_, {node, id, of_outputs, std::span(wanted.get(), node.inputs.size())});
    for (std::size_t at = 0; at < node.inputs.size(); ++at) {
      if (!wanted[at]) {
        continue;
      }
      if (at >= gradients.size() || !gradients[at]) {
        throw no_gradient(node, "input", at);
      }
      add_to(node.inputs[at], *gradients[at]);
    }
  }

  // A loss that depends on its parameters this way cannot be learned from; told rather than
  // learned from without.
  static Failure no_gradient(const Node& node, std::string_view side, std::size_t at) {
    return Failure(bad_input(fmt::format(
        "{}{}{}: the loss depends on parameters through {} {}, which has no gradient",
        node.name, node.name.empty() ? "" : ": ", name_of(node.op), side, at)));
  }

  // A parameter may be read as itself and as copies: its gradient is the sum.
  void name_gradients() {
    std::map<std::string, Value> sums;
    std::vector<std::string> order;
    for (int id = 0; id < forward_; ++id) {
      const auto found = gradients_.find({id, 0});
      if (graph_->node(id).op != Op::read || found == gradients_.end()) {
        continue;
      }
      const StateSpec* state = graph_->state(graph_->node(id).attributes.word("state"));
      const std::string parameter = state->role == StateRole::copy ? state->of : state->name;
      build_.set_name(graph_->node(id).name);
      const Value gradient = build_.cast(found->second, gradient_dtype(parameter));
      const auto [place, is_first] = sums.try_emplace(parameter, gradient);
      if (is_first) {
        order.push_back(parameter);
      } else {
        place->second = build_.add(Op::add, {place->second, gradient});
      }
    }
    for (const std::string& parameter : order) {
      graph_->set_result(fmt::format("{}{}", kGradient, parameter), sums.at(parameter));
    }
  }

  // A parameter that an override keeps wider than the rest has a gradient as wide.
  DType gradient_dtype(const std::string& parameter) const {
    const DType own = graph_->state(parameter)->type.dtype;
    const DType usual = precision_->masters ? DType::f32 : precision_->parameter;
    return own == usual ? precision_->gradient : own;
  }

  Graph* graph_;
  Builder build_;
  const Precision* precision_;
  std::span<const std::string> frozen_;
  int forward_;
  std::vector<bool> wanted_;
  std::map<Value, Value> gradients_;
};

}  // namespace

StateSpec loss_scale_state() {
  return {std::string(kLossScale), StateRole::scaler, {DType::f32, Shape()}, {}, 65536};
}

Graph with_gradients(const Graph& graph,
                     const Precision& precision,
                     int micro_batches,
                     std::span<const std::string> frozen) {
  Graph both = graph;
  Backward(both, precision, frozen).run(micro_batches);
  return without_dead_nodes(both);
}

}  // namespace halfwatt

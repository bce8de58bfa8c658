#include "engine/passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : from_(&graph), rewrite_(graph) {
    for (int id = 0; id < graph.size(); ++id) {
      for (const Value input : graph.node(id).inputs) {
        users_[input].push_back(id);
      }
    }
    for (const GraphResult& result : graph.results()) {
      is_result_[result.value] = true;
    }
    done_.resize(static_cast<std::size_t>(graph.size()));
  }

  Graph run() {
    for (const StateSpec& state : from_->states()) {
      rewrite_.graph().declare(state);
    }
    for (int id = 0; id < from_->size(); ++id) {
      if (!is_done(id) && !fuse_norm(id) && !fuse_norm_gradient(id)) {
        rewrite_.copy(id);
      }
    }
    return rewrite_.finish();
  }

 private:
  bool is_done(int id) const { return done_[static_cast<std::size_t>(id)]; }
  void set_done(int id) { done_[static_cast<std::size_t>(id)] = true; }
  const std::vector<int>& users(Value value) const {
    static const std::vector<int> kNobody;
    const auto found = users_.find(value);
    return found == users_.end() ? kNobody : found->second;
  }

  // The one norm of this sum that can be computed with it: its weights are read, not computed.
  std::optional<int> norm_of(int id) const {
    const Node& sum = from_->node(id);
    const auto same = [&](std::size_t at) {
      return from_->type(sum.inputs[at]).shape == sum.outputs[0].shape;
    };
    if (sum.op != Op::add || sum.phase != Phase::forward || !same(0) || !same(1)) {
      return std::nullopt;
    }
    for (const int user : users({id, 0})) {
      const Node& norm = from_->node(user);
      const auto is_read = [&](std::size_t at) {
        return from_->node(norm.inputs[at].node).op == Op::read;
      };
      if (norm.op == Op::layer_norm && norm.phase == sum.phase && norm.device == sum.device &&
          norm.inputs[0] == Value{id, 0} && is_read(1) && is_read(2)) {
        return user;
      }
    }
    return std::nullopt;
  }

  // What everybody casts the value to, if all do and to the same.
  std::optional<DType> cast_to(Value value) const {
    std::optional<DType> to;
    if (users(value).empty() || is_result_.count(value) != 0) {
      return std::nullopt;
    }
    for (const int user : users(value)) {
      const Node& cast = from_->node(user);
      if (cast.op != Op::cast || (to && *to != cast.outputs[0].dtype)) {
        return std::nullopt;
      }
      to = cast.outputs[0].dtype;
    }
    return bytes_of(*to) < bytes_of(from_->type(value).dtype) ? to : std::nullopt;
  }

  bool fuse_norm(int id) {
    const std::optional<int> found = norm_of(id);
    if (!found) {
      return false;
    }
    const Node& sum = from_->node(id);
    const Node& norm = from_->node(*found);
    for (const std::size_t weight : {1U, 2U}) {  // a read can be moved: it needs nothing
      const int read = norm.inputs[weight].node;
      if (read > id && !is_done(read)) {
        rewrite_.copy(read);
        set_done(read);
      }
    }
    Attributes attributes = norm.attributes;
    const std::optional<DType> narrow = cast_to({*found, 0});
    if (narrow) {
      attributes.set("to", *narrow);
    }
    rewrite_.follow(norm);
    const Value both =
        rewrite_.build().add(Op::add_layer_norm,
                             {rewrite_.now(sum.inputs[0]), rewrite_.now(sum.inputs[1]),
                              rewrite_.now(norm.inputs[1]), rewrite_.now(norm.inputs[2])},
                             std::move(attributes));
    rewrite_.map(id, both);
    rewrite_.map(*found, Builder::output(both, 1));
    set_done(*found);
    if (narrow) {
      for (const int cast : users({*found, 0})) {
        rewrite_.map(cast, Builder::output(both, 1));
        set_done(cast);
      }
    }
    return true;
  }

  // Formats that some device emulates are rounded once by it, where two kernels round twice.
  static bool rounds_as_two(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
  }

  // Autodiff adds the gradient of the branch to the one that went around it, right behind it.
  bool fuse_norm_gradient(int id) {
    const Node& gradient = from_->node(id);
    if (gradient.op != Op::layer_norm_gradient || users({id, 0}).size() != 1 ||
        is_result_.count({id, 0}) != 0) {
      return false;
    }
    const int user = users({id, 0})[0];
    const Node& sum = from_->node(user);
    if (sum.op != Op::add || sum.inputs[1] != Value{id, 0} || sum.inputs[0].node > id ||
        sum.device != gradient.device || !(from_->type(sum.inputs[0]) == gradient.outputs[0]) ||
        !rounds_as_two(gradient.outputs[0].dtype)) {
      return false;
    }
    std::vector<Value> inputs = rewrite_.now(gradient.inputs);
    inputs.push_back(rewrite_.now(sum.inputs[0]));
    rewrite_.follow(gradient);
    const Value both =
        rewrite_.build().add(Op::layer_norm_gradient, std::move(inputs), gradient.attributes);
    rewrite_.map(id, both);
    rewrite_.map(user, both);
    set_done(user);
    return true;
  }

  const Graph* from_;
  Rewrite rewrite_;
  std::map<Value, std::vector<int>> users_;
  std::map<Value, bool> is_result_;
  std::vector<bool> done_;
};

}  // namespace

Graph with_fused(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace halfwatt

#include "engine/passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/ops/optimizer.h"
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
      if (!is_done(id) && !fuse_norm(id) && !fuse_cast(id) && !fuse_norm_gradient(id) &&
          !fuse_updates(id)) {
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

  bool is_read(Value value) const { return from_->node(value.node).op == Op::read; }
  // What `node` reads, to before node `id`: a read can be moved, it needs nothing.
  void bring_reads(const Node& node, int id) {
    for (const Value input : node.inputs) {
      if (is_read(input) && input.node > id && !is_done(input.node)) {
        rewrite_.copy(input.node);
        set_done(input.node);
      }
    }
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
      if (norm.op == Op::layer_norm && norm.phase == sum.phase && norm.device == sum.device &&
          norm.inputs[0] == Value{id, 0} && is_read(norm.inputs[1]) &&
          is_read(norm.inputs[2])) {
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
    bring_reads(norm, id);
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

  // Whether `reader` widens what it reads there by itself: the gradient of a norm's output, and
  // gradients of parameters where they are checked and applied.
  bool widens(const Node& reader, Value value) const {
    switch (reader.op) {
      case Op::layer_norm_gradient:
        return reader.inputs[0] == value;
      case Op::check_gradients:
      case Op::adamw:
      case Op::sgd:
        return true;
      default:
        return false;
    }
  }

  // Gradients come from products, which may be narrower than who reads them.
  bool fuse_cast(int id) {
    const Node& cast = from_->node(id);
    const auto& readers = users({id, 0});
    if (cast.op != Op::cast || cast.phase == Phase::forward || readers.empty() ||
        bytes_of(from_->type(cast.inputs[0]).dtype) != 2 ||
        bytes_of(cast.outputs[0].dtype) <= 2) {
      return false;
    }
    const bool all = std::all_of(readers.begin(), readers.end(), [&](int each) {
      const Node& reader = from_->node(each);
      return widens(reader, {id, 0}) && reader.device == cast.device;
    });
    if (!all) {
      return false;
    }
    rewrite_.map(id, rewrite_.now(cast.inputs[0]));
    widened_.insert(id);
    return true;
  }

  // Of a value where it is read, a cast that fuse_cast() left out not counted.
  DType read_as(Value value) const {
    const bool is_left_out = widened_.count(value.node) != 0;
    return from_->type(is_left_out ? from_->node(value.node).inputs[0] : value).dtype;
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

  // Whether update `other` can be computed where `id` is, and by the same kernel.
  bool is_update_like(int id, int other) const {
    const Node& one = from_->node(id);
    const Node& node = from_->node(other);
    if (node.op != one.op || node.device != one.device ||
        !(node.attributes == one.attributes) || node.inputs.size() != one.inputs.size()) {
      return false;
    }
    const std::size_t own = parameters_of(node.op, node.inputs.size()).each;
    for (std::size_t at = 0; at < node.inputs.size(); ++at) {
      const Value input = node.inputs[at];
      const bool fits = at < own ? read_as(input) == read_as(one.inputs[at]) &&
                                       (input.node < id || is_read(input))
                                 : input == one.inputs[at];
      if (!fits) {
        return false;
      }
    }
    return true;
  }

  bool fuse_updates(int id) {
    const Node& first = from_->node(id);
    if ((first.op != Op::adamw && first.op != Op::sgd) || first.attributes.has("path")) {
      return false;
    }
    std::vector<int> alike;
    for (int other = id; other < from_->size(); ++other) {
      if (is_update_like(id, other)) {
        alike.push_back(other);
      }
    }
    if (alike.size() == 1) {
      return false;
    }
    const std::size_t own = parameters_of(first.op, first.inputs.size()).each;
    std::vector<Value> inputs;
    for (const int each : alike) {
      const Node& node = from_->node(each);
      bring_reads(node, id);
      for (std::size_t at = 0; at < own; ++at) {
        inputs.push_back(rewrite_.now(node.inputs[at]));
      }
    }
    for (std::size_t at = own; at < first.inputs.size(); ++at) {
      inputs.push_back(rewrite_.now(first.inputs[at]));
    }
    rewrite_.follow(first);
    rewrite_.build().set_name("update");
    const Value all = rewrite_.build().add(first.op, std::move(inputs), first.attributes);
    for (std::size_t at = 0; at < alike.size(); ++at) {
      rewrite_.map(alike[at], Builder::output(all, static_cast<int>(at * own)));
      set_done(alike[at]);
    }
    return true;
  }

  const Graph* from_;
  Rewrite rewrite_;
  std::map<Value, std::vector<int>> users_;
  std::map<Value, bool> is_result_;
  std::vector<bool> done_;
  std::set<int> widened_;  ///< casts that are left out
};

}  // namespace

Graph with_fused(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace halfwatt

#include "engine/plan/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/ops/op_def.h"
#include "engine/plan/schedule.h"

namespace halfwatt {
namespace {

using Fault = std::optional<std::string>;

// Byte `at` of an output of a node; of no node is poison.
struct Byte {
  Value value;
  std::size_t at = 0;
  bool operator==(const Byte&) const = default;
};
using Memory = std::vector<Byte>;

std::string text(const Byte& byte) {
  return byte.value.node < 0
             ? "poison"
             : fmt::format("byte {} of %{}.{}", byte.at, byte.value.node, byte.value.output);
}

// What a step has to do with: memory, and where in it.
struct Region {
  Memory* memory = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;

  std::span<Byte> bytes() const { return std::span(*memory).subspan(begin, end - begin); }
  bool overlaps(const Region& other) const {
    return memory == other.memory && std::max(begin, other.begin) < std::min(end, other.end);
  }
  bool operator==(const Region&) const = default;
};

class Shadow {
 public:
  explicit Shadow(const Plan& plan) : plan_(&plan), graph_(&plan.graph) {
    for (const DevicePlan& device : plan.devices) {
      arenas_.emplace_back(device.arena);
    }
    for (const StateSpec& state : graph_->states()) {
      states_.emplace_back(state.type.bytes());
      if (const auto reader = graph_->reader(state.name)) {
        fill(states_.back(), *reader);
      }
    }
    for (int id = 0; id < graph_->size(); ++id) {
      if (graph_->node(id).op == Op::input) {
        inputs_.emplace_back(graph_->node(id).outputs[0].bytes());
        fill(inputs_.back(), {id, 0});
      }
    }
  }

  Fault run(const Interleaving& next) {
    done_.resize(plan_->devices.size());
    for (std::vector<int> ready = able(); !ready.empty(); ready = able()) {
      const auto device = static_cast<std::size_t>(ready[next(ready)]);
      const Step& step = plan_->devices[device].steps[done_[device]];
      if (Fault fault = take(step, static_cast<int>(device))) {
        const Node& node = graph_->node(step.node);
        return fmt::format("%{} {}: {}", step.node, name_of(node.op), *fault);
      }
      ++done_[device];
    }
    for (std::size_t device = 0; device < done_.size(); ++device) {
      if (done_[device] != plan_->devices[device].steps.size()) {
        return fmt::format("device {} waits for ever", device);
      }
    }
    if (Fault fault = check_results()) {
      return fault;
    }
    return check_states();
  }

 private:
  // The value whose bytes a chain of reshapes has.
  Value origin(Value value) const {
    while (graph_->node(value.node).op == Op::reshape) {
      value = graph_->node(value.node).inputs[0];
    }
    return value;
  }

  void fill(std::span<Byte> bytes, Value value) const {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      bytes[at] = {origin(value), at};
    }
  }

  Fault holds(std::span<const Byte> bytes, Value value) const {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const Byte wanted{origin(value), at};
      if (!(bytes[at] == wanted)) {
        return fmt::format("{} where {} is needed", text(bytes[at]), text(wanted));
      }
    }
    return std::nullopt;
  }

  std::vector<int> able() const {
    std::vector<int> ready;
    for (std::size_t device = 0; device < plan_->devices.size(); ++device) {
      const auto& steps = plan_->devices[device].steps;
      const std::size_t next = done_[device];
      if (next < steps.size() &&
          std::all_of(steps[next].waits.begin(), steps[next].waits.end(), [&](Wait wait) {
            return done_[static_cast<std::size_t>(wait.device)] >
                   static_cast<std::size_t>(wait.step);
          })) {
        ready.push_back(static_cast<int>(device));
      }
    }
    return ready;
  }

  // Sets `region` to the bytes of `place`, which belongs to `device`.
  Fault find(const Place& place, int device, Region& region) {
    const auto at = static_cast<std::size_t>(device);
    const auto index = static_cast<std::size_t>(place.index);
    const auto is_here = [&](const std::vector<int>& list) {
      return std::count(list.begin(), list.end(), place.index) == 1;
    };
    region = {&arenas_[at], place.offset, place.offset + place.type.bytes()};
    if (place.space != Place::Space::arena) {
      const bool state = place.space == Place::Space::state;
      const DevicePlan& here = plan_->devices[at];
      if (!is_here(state ? here.states : here.inputs)) {
        return fmt::format("a state or input {} that device {} does not hold", index, device);
      }
      region = {state ? &states_[index] : &inputs_[index], 0, place.type.bytes()};
      if (region.memory->size() != place.type.bytes()) {
        return fmt::format("{} is not all of state or input {}", text(place.type), index);
      }
    }
    if (region.end > region.memory->size() || region.begin % kAlignment != 0) {
      return fmt::format("bytes {} to {} of {}", region.begin, region.end,
                         region.memory->size());
    }
    return std::nullopt;
  }

  Fault take(const Step& step, int device) {
    const Node& node = graph_->node(step.node);
    if (node.device != device || step.inputs.size() != node.inputs.size() ||
        step.outputs.size() != std::max<std::size_t>(node.outputs.size(), 1)) {
      return "not what the node says";
    }
    std::vector<Region> from(step.inputs.size());
    for (std::size_t at = 0; at < from.size(); ++at) {
      const Value input = node.inputs[at];
      if (!(step.inputs[at].type == graph_->type(input))) {
        return "an input of another type";
      }
      const int owner = graph_->node(input.node).device;
      if (Fault fault = find(step.inputs[at], owner, from[at])) {
        return fault;
      }
      if (Fault fault = holds(from[at].bytes(), input)) {
        return fmt::format("input {}: {}", at, *fault);
      }
    }
    return put(step, device, from);
  }

  Fault put(const Step& step, int device, const std::vector<Region>& from) {
    const Node& node = graph_->node(step.node);
    std::vector<Region> to(step.outputs.size());
    for (std::size_t at = 0; at < to.size(); ++at) {
      if (node.op != Op::write && !(step.outputs[at].type == node.outputs[at])) {
        return "an output of another type";
      }
      if (Fault fault = find(step.outputs[at], device, to[at])) {
        return fault;
      }
    }
    Region scratch;
    if (step.workspace.type.dtype != DType::u8) {
      return "a workspace that is not of bytes";
    }
    if (Fault fault = find(step.workspace, device, scratch)) {
      return fault;
    }
    if (Fault fault = check_overlaps(step, from, to, scratch)) {
      return fault;
    }
    std::ranges::fill(scratch.bytes(), Byte{});
    for (int at = 0; at < static_cast<int>(to.size()); ++at) {
      fill(to[static_cast<std::size_t>(at)].bytes(),
           node.op == Op::write ? node.inputs[0] : Value{step.node, at});
    }
    return std::nullopt;
  }

  // A kernel reads while it writes.
  Fault check_overlaps(const Step& step,
                       const std::vector<Region>& from,
                       const std::vector<Region>& to,
                       const Region& scratch) const {
    const Op op = graph_->node(step.node).op;
    for (std::size_t out = 0; out < to.size(); ++out) {
      for (std::size_t in = 0; in < from.size(); ++in) {
        const bool may = from[in] == to[out] &&
                         step.inputs[in].type == step.outputs[out].type &&
                         may_overwrite(op, static_cast<int>(out), static_cast<int>(in));
        if (to[out].overlaps(from[in]) && !may) {
          return fmt::format("output {} is written over input {}, which is still read", out,
                             in);
        }
      }
      for (std::size_t other = 0; other < out; ++other) {
        if (to[out].overlaps(to[other])) {
          return fmt::format("outputs {} and {} share bytes", other, out);
        }
      }
    }
    const auto is_in_scratch = [&](const Region& each) { return each.overlaps(scratch); };
    if (std::ranges::any_of(from, is_in_scratch) || std::ranges::any_of(to, is_in_scratch)) {
      return "the workspace covers an input or output";
    }
    return std::nullopt;
  }

  Fault check_results() {
    for (std::size_t at = 0; at < plan_->results.size(); ++at) {
      const PlanResult& result = plan_->results[at];
      Region region;
      Fault fault = find(result.place, result.device, region);
      if (!fault) {
        fault = holds(region.bytes(), graph_->results()[at].value);
      }
      if (fault) {
        return fmt::format("result {}: {}", result.name, *fault);
      }
    }
    return std::nullopt;
  }

  Fault check_states() {
    for (std::size_t at = 0; at < states_.size(); ++at) {
      const StateSpec& state = graph_->states()[at];
      std::optional<Value> value = graph_->reader(state.name);
      for (const Node& node : graph_->nodes()) {
        if (node.op == Op::write && node.attributes.word("state") == state.name) {
          value = node.inputs[0];
        }
      }
      if (value) {
        if (Fault fault = holds(states_[at], *value)) {
          return fmt::format("state {}: {}", state.name, *fault);
        }
      }
    }
    return std::nullopt;
  }

  const Plan* plan_;
  const Graph* graph_;
  std::vector<Memory> arenas_;
  std::vector<Memory> states_;
  std::vector<Memory> inputs_;
  std::vector<std::size_t> done_;  // by device: steps taken
};

}  // namespace

std::size_t in_turn(const std::vector<int>&) { return 0; }

std::optional<std::string> first_fault(const Plan& plan, const Interleaving& next) {
  return Shadow(plan).run(next);
}

}  // namespace halfwatt

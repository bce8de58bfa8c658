#include "engine/plan/memory.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/check.h"
#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

// What some values share: one buffer of an arena, or a state, or an input.
struct Storage {
  Place::Space space = Place::Space::arena;
  int index = 0;   // of the state or input
  int device = 0;  // of the arena
  Lifetime life;
  bool is_number = false;  // a small result
};

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<std::size_t>& workspaces, int devices)
      : graph_(&graph), workspaces_(&workspaces), devices_(devices) {
    find_last_uses();
    for (int id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op == Op::write) {
        written_.emplace(graph.node(id).inputs[0], id);
      }
    }
  }

  Memory run() {
    memory_.is_in_place.resize(static_cast<std::size_t>(graph_->size()));
    for (int id = 0; id < graph_->size(); ++id) {
      choose(id);
    }
    lay_out();
    return std::move(memory_);
  }

 private:
  // The value that a chain of reshapes shows.
  Value shown(Value value) const {
    while (graph_->node(value.node).op == Op::reshape) {
      value = graph_->node(value.node).inputs[0];
    }
    return value;
  }

  void find_last_uses() {
    const int end = graph_->size();
    for (int id = 0; id < end; ++id) {
      const Node& node = graph_->node(id);
      for (const Value input : node.inputs) {
        const Value value = shown(input);
        // Another device copies it when it gets there.
        const bool leaves = graph_->node(value.node).device != node.device;
        int& last = last_use_[value];
        last = std::max(last, leaves ? end : id);
      }
    }
    for (const GraphResult& result : graph_->results()) {
      last_use_[shown(result.value)] = end;
      if (graph_->type(result.value).bytes() <= kSmallResult) {
        numbers_.insert(shown(result.value));
      }
    }
  }

  int last_use(Value value) const {
    const auto found = last_use_.find(value);
    return found == last_use_.end() ? value.node : std::max(found->second, value.node);
  }

  int state_index(const std::string& name) const {
    const auto& states = graph_->states();
    const auto found = std::find_if(states.begin(), states.end(),
                                    [&](const StateSpec& each) { return each.name == name; });
    HALFWATT_CHECK(found != states.end(), "a state that the graph declares");
    return static_cast<int>(found - states.begin());
  }

  void choose(int id) {
    const Node& node = graph_->node(id);
    if (node.op == Op::input) {
      add({id, 0}, {Place::Space::input, inputs_++, node.device, {}});
    } else if (node.op == Op::read) {
      add({id, 0},
          {Place::Space::state, state_index(node.attributes.word("state")), node.device, {}});
    } else if (node.op == Op::reshape) {
      storage_of_[{id, 0}] = storage_of_.at(node.inputs[0]);
    } else if (node.op == Op::write) {
      const Storage& from = storages_[storage_of_.at(node.inputs[0])];
      memory_.is_in_place[static_cast<std::size_t>(id)] =
          from.space == Place::Space::state &&
          from.index == state_index(node.attributes.word("state"));
    } else {
      for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
        choose_for({id, output});
      }
    }
  }

  void add(Value value, Storage storage) {
    storage_of_[value] = storages_.size();
    storages_.push_back(storage);
  }

  void choose_for(Value value) {
    const bool is_number = numbers_.count(value) > 0;
    if (const auto write = written_.find(value);
        write != written_.end() && !is_number && can_lie_in_state(value, write->second)) {
      const Node& node = graph_->node(write->second);
      add(value,
          {Place::Space::state, state_index(node.attributes.word("state")), node.device, {}});
      return;
    }
    const std::size_t bytes = graph_->type(value).bytes();
    if (const auto over = overwritten(value)) {
      storage_of_[value] = *over;
      Lifetime& life = storages_[*over].life;
      life.last = std::max(life.last, last_use(value));
      storages_[*over].is_number |= is_number;
      return;
    }
    add(value, {Place::Space::arena,
                0,
                graph_->node(value.node).device,
                {bytes, value.node, last_use(value)},
                is_number});
  }

  // Nobody needs what is in the state once `value` is computed, nor while it is.
  bool can_lie_in_state(Value value, int write) const {
    const Node& node = graph_->node(value.node);
    const Node& writing = graph_->node(write);
    const auto before = graph_->reader(writing.attributes.word("state"));
    if (!before) {
      return true;
    }
    if (last_use(*before) > value.node) {
      return false;
    }
    for (int at = 0; at < static_cast<int>(node.inputs.size()); ++at) {
      const Value input = node.inputs[static_cast<std::size_t>(at)];
      const bool may = graph_->type(input) == graph_->type(value) &&
                       may_overwrite(node.op, value.output, at);
      if (shown(input) == *before && !may) {
        return false;
      }
    }
    return true;
  }

  // The storage of an input that ends here and that the op may overwrite.
  std::optional<std::size_t> overwritten(Value value) const {
    const Node& node = graph_->node(value.node);
    for (int at = 0; at < static_cast<int>(node.inputs.size()); ++at) {
      const Value input = node.inputs[static_cast<std::size_t>(at)];
      const std::size_t storage = storage_of_.at(input);
      const Storage& old = storages_[storage];
      const bool ends = old.space == Place::Space::arena && old.life.last == value.node;
      if (ends && graph_->type(input) == graph_->type(value) &&
          may_overwrite(node.op, value.output, at) && is_only_use(node, input)) {
        return storage;
      }
    }
    return std::nullopt;
  }

  // add(x, x) must not overwrite what it reads a second time in another order. Nor can two
  // outputs lie where one input does: ops let each overwrite another input.
  bool is_only_use(const Node& node, Value input) const {
    return std::count_if(node.inputs.begin(), node.inputs.end(), [&](Value each) {
             return storage_of_.at(each) == storage_of_.at(input);
           }) == 1;
  }

  void lay_out() {
    memory_.arenas.resize(static_cast<std::size_t>(devices_));
    memory_.numbers.resize(static_cast<std::size_t>(devices_));
    const Place none{Place::Space::arena, 0, 0, {DType::u8, Shape{0}}};
    memory_.workspaces.resize(static_cast<std::size_t>(graph_->size()), none);
    std::vector<std::size_t> offsets(storages_.size());
    for (int device = 0; device < devices_; ++device) {
      lay_out_device(device, offsets);
    }
    for (const auto& [value, storage] : storage_of_) {
      const Storage& where = storages_[storage];
      memory_.values[value] = {where.space, offsets[storage], where.index, graph_->type(value)};
    }
  }

  void lay_out_device(int device, std::vector<std::size_t>& offsets) {
    std::vector<Lifetime> buffers;
    std::vector<std::size_t> owners;
    std::size_t numbers = 0;
    for (std::size_t at = 0; at < storages_.size(); ++at) {
      if (storages_[at].space != Place::Space::arena || storages_[at].device != device) {
        continue;
      }
      if (storages_[at].is_number) {
        offsets[at] = numbers;
        numbers += aligned(storages_[at].life.bytes);
      } else {
        buffers.push_back(storages_[at].life);
        owners.push_back(at);
      }
    }
    const std::size_t values = buffers.size();
    std::vector<int> scratch;
    for (int id = 0; id < graph_->size(); ++id) {
      const std::size_t bytes = (*workspaces_)[static_cast<std::size_t>(id)];
      if (bytes > 0 && graph_->node(id).device == device) {
        buffers.push_back({bytes, id, id});
        scratch.push_back(id);
      }
    }
    const Packing packing = pack(buffers);
    memory_.numbers[static_cast<std::size_t>(device)] = numbers;
    memory_.arenas[static_cast<std::size_t>(device)] = numbers + packing.size;
    for (std::size_t at = 0; at < values; ++at) {
      offsets[owners[at]] = numbers + packing.offsets[at];
    }
    for (std::size_t at = 0; at < scratch.size(); ++at) {
      const auto id = static_cast<std::size_t>(scratch[at]);
      memory_.workspaces[id] = {
          Place::Space::arena,
          numbers + packing.offsets[values + at],
          0,
          {DType::u8, Shape{static_cast<std::int64_t>((*workspaces_)[id])}}};
    }
  }

  const Graph* graph_;
  const std::vector<std::size_t>* workspaces_;
  int devices_;
  std::map<Value, int> last_use_;  // by value that is no reshape
  std::map<Value, int> written_;   // the first write of a value
  std::set<Value> numbers_;        // small results
  std::map<Value, std::size_t> storage_of_;
  std::vector<Storage> storages_;
  int inputs_ = 0;
  Memory memory_;
};

}  // namespace

Memory place(const Graph& graph, const std::vector<std::size_t>& workspaces, int devices) {
  return Placer(graph, workspaces, devices).run();
}

}  // namespace halfwatt

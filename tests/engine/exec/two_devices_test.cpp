// A graph split over two backends of the CPU, each with threads and an arena of its own.

#include <gtest/gtest.h>

#include <functional>

#include "engine/exec/micro_training.h"
#include "engine/ops/verify.h"
#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

/// Whether a layer, parameter or state of that name is on the second device.
using IsElsewhere = std::function<bool(const std::string&)>;

/// The graph with transfers where an edge leaves its device.
class Split {
 public:
  Split(const Graph& graph, IsElsewhere is_elsewhere)
      : from_(&graph), rewrite_(graph), is_elsewhere_(std::move(is_elsewhere)) {}

  Graph run() {
    for (const StateSpec& state : from_->states()) {
      rewrite_.graph().declare(state);
    }
    for (int id = 0; id < from_->size(); ++id) {
      const Node& node = from_->node(id);
      const int device = device_of(node);
      rewrite_.follow(node);
      rewrite_.build().set_device(device);
      std::vector<Value> inputs = rewrite_.now(node.inputs);
      for (Value& input : inputs) {
        input = brought(input, device);
      }
      rewrite_.build().set_phase(node.phase);
      rewrite_.map(id, rewrite_.build().add(node.op, inputs, node.attributes));
    }
    return rewrite_.finish();
  }

 private:
  int device_of(const Node& node) const {
    if (node.op == Op::read || node.op == Op::write) {
      const StateSpec* state = from_->state(node.attributes.word("state"));
      return is_elsewhere_(state->of.empty() ? state->name : state->of) ? 1 : 0;
    }
    return is_elsewhere_(node.name) ? 1 : 0;
  }

  Value brought(Value value, int device) {
    const int at = rewrite_.graph().node(value.node).device;
    if (at == device) {
      return value;
    }
    const auto [place, is_new] = transfers_.try_emplace({value, device});
    if (is_new) {
      // The phase of what is moved, so that a forward node may use it.
      const Phase phase = rewrite_.graph().node(value.node).phase;
      rewrite_.build().set_phase(phase);
      place->second = rewrite_.build().add(Op::transfer, {value},
                                           {{"from", static_cast<std::int64_t>(at)}});
    }
    return place->second;
  }

  const Graph* from_;
  Rewrite rewrite_;
  IsElsewhere is_elsewhere_;
  std::map<std::pair<Value, int>, Value> transfers_;
};

bool second_block(const std::string& name) { return name.rfind("blocks.1", 0) == 0; }
bool the_norms(const std::string& name) { return name.find("norm") != std::string::npos; }

/// A session over cpu:0 and cpu:1 of the same training as `training` says.
class OnTwo {
 public:
  OnTwo(const MicroTraining& training, const IsElsewhere& is_elsewhere) : training_(training) {
    const Graph graph = Split(training.graphs()[0], is_elsewhere).run();
    const auto legal = verify(graph);
    EXPECT_TRUE(legal) << legal.error().message;
    for (const char* name : {"cpu:0", "cpu:1"}) {
      backends_.push_back(std::move(*open_cpu({name, training.threads})));
    }
    const std::vector<Target> targets = {backends_[0]->target(), backends_[1]->target()};
    auto plan = lower(graph, targets);
    EXPECT_TRUE(plan) << plan.error().message;
    EXPECT_FALSE(plan->devices[1].steps.empty());
    std::vector<Plan> plans;
    plans.push_back(std::move(*plan));
    session_ = std::move(
        *Session::open(std::move(plans), {backends_[0].get(), backends_[1].get()}, states_));
    for (const StateSpec& state : vit_parameters(training.model)) {
      const Tensor value = tensor_of(state.type, training.first_value(state));
      EXPECT_TRUE(states_.load(state.name, value.view()));
    }
  }

  std::vector<double> step(int step) {
    bind("images", training_.pixels(training_.batch, step));
    bind("labels", training_.labels(training_.batch, step));
    bind("valid", {static_cast<double>(training_.batch)});
    bind("random", {9, static_cast<double>(step), 0});
    const auto ran = session_->run(0);
    EXPECT_TRUE(ran) << ran.error().message;
    return doubles(session_->result(0, "losses"));
  }

  States& states() { return states_; }

 private:
  void bind(const std::string& input, const std::vector<double>& values) {
    for (const PlanInput& each : session_->plan(0).inputs) {
      if (each.name == input) {
        session_->bind(0, input, tensor_of(each.type, values).view());
      }
    }
  }

  MicroTraining training_;
  std::vector<std::unique_ptr<Backend>> backends_;
  States states_;
  std::unique_ptr<Session> session_;
};

MicroTraining training(std::string_view mode) {
  MicroTraining all;
  all.mode = mode;
  all.model.drop_path = 0.2;
  all.optimizer.max_norm = 1;
  all.optimizer.average = 0.9;
  all.threads = 2;
  return all;
}

void expect_the_same_as_on_one(std::string_view mode, const IsElsewhere& is_elsewhere) {
  SCOPED_TRACE(mode);
  MicroRun one(training(mode));
  OnTwo two(training(mode), is_elsewhere);
  for (int step = 1; step <= 5; ++step) {
    EXPECT_EQ(two.step(step), one.step(step)) << step;
  }
  for (const std::string& name : one.run().states().names()) {
    EXPECT_TRUE(same_bits(two.states().save(name), one.run().states().save(name))) << name;
  }
}

TEST(TwoDevices, compute_the_bits_of_one_where_a_block_is_on_the_other) {
  for (const char* mode : {"fp64", "fp32", "amp-bf16", "amp-fp16", "fp8-delayed"}) {
    expect_the_same_as_on_one(mode, second_block);
  }
}

TEST(TwoDevices, compute_the_bits_of_one_where_every_norm_is_on_the_other) {
  for (const char* mode : {"fp32", "O2"}) {
    expect_the_same_as_on_one(mode, the_norms);
  }
}

}  // namespace
}  // namespace halfwatt

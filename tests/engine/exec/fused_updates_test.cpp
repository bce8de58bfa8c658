// Updates of many parameters by one node, against the same one by one.

#include <gtest/gtest.h>

#include "engine/exec/micro_training.h"
#include "engine/passes/fuse.h"

namespace halfwatt {
namespace {

/// The update of accumulated gradients alone, whose bits no product with threads is in.
Graph update(const MicroTraining& training) { return training.graphs()[1]; }

/// Parameters, moments and gradients from which an update starts; some beyond f16.
void load(CpuRun& run, const Graph& graph, int step) {
  for (const StateSpec& state : graph.states()) {
    if (state.role == StateRole::parameter && step > 0) {
      continue;
    }
    if (state.role == StateRole::parameter || state.role == StateRole::accumulator) {
      Rng rng(fnv1a(state.name) + static_cast<std::uint64_t>(step));
      std::vector<double> values(static_cast<std::size_t>(state.type.shape.elements()));
      for (double& value : values) {
        value = 0.1 * rng.normal();
      }
      run.load(state.name, tensor_of(state.type, values));
    }
  }
}

std::vector<Tensor> after_three_steps(const Graph& graph, int threads) {
  CpuRun run(graph, threads);
  for (int step = 0; step < 3; ++step) {
    load(run, graph, step);
    run.bind("random", {1, static_cast<double>(step), 0});
    run.run();
  }
  std::vector<Tensor> all;
  for (const StateSpec& state : graph.states()) {
    all.push_back(run.states().save(state.name));
  }
  for (const GraphResult& result : graph.results()) {
    all.push_back(run.result(result.name));
  }
  return all;
}

TEST(FusedUpdates, have_the_bits_of_updates_one_by_one_at_any_number_of_threads) {
  for (const Precision& row : precisions()) {
    for (const auto kind : {Optimizer::Kind::adamw, Optimizer::Kind::sgd}) {
      SCOPED_TRACE(row.name);
      MicroTraining training;
      training.mode = row.name;
      training.micro_batches = 2;
      training.optimizer.kind = kind;
      training.optimizer.average = 0.9;
      const Graph one_by_one = update(training);
      const Graph fused = with_fused(one_by_one);
      // A parameter that is rounded at random has a path of its own.
      ASSERT_EQ(fused.size() < one_by_one.size(), !row.stochastic);
      const std::vector<Tensor> wanted = after_three_steps(one_by_one, 1);
      for (const int threads : {1, 2, 5}) {
        const std::vector<Tensor> got = after_three_steps(fused, threads);
        ASSERT_EQ(got.size(), wanted.size());
        for (std::size_t at = 0; at < got.size(); ++at) {
          EXPECT_TRUE(same_bits(got[at], wanted[at])) << threads << " threads, " << at;
        }
      }
    }
  }
}

TEST(FusedUpdates, leave_everything_as_it_was_when_skipped) {
  MicroTraining training;
  training.mode = "amp-fp16";
  training.micro_batches = 2;
  const Graph graph = with_fused(update(training));
  CpuRun run(graph, 2);
  load(run, graph, 0);
  const Tensor before = run.states().save("head.weight");
  run.load("head.bias.gradient", tensor_of({DType::f32, Shape{3}}, {INFINITY}));
  run.run();
  EXPECT_EQ(run.number("skipped"), 1);
  EXPECT_TRUE(same_bits(before, run.states().save("head.weight")));
  const auto elements = static_cast<double>(before.type().shape.elements());
  EXPECT_EQ(run.numbers("tally:head.weight"), (std::vector<double>{0, elements}));
}

}  // namespace
}  // namespace halfwatt

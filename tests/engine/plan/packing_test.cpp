#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "engine/models/vit.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"
#include "engine/plan/memory.h"

namespace halfwatt {
namespace {

constexpr std::size_t kUnit = kAlignment;

bool live_together(const Lifetime& one, const Lifetime& other) {
  return one.first <= other.last && other.first <= one.last;
}

void expect_apart(const std::vector<Lifetime>& buffers, const Packing& packing) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < buffers.size(); ++at) {
    const std::size_t begin = packing.offsets[at];
    EXPECT_EQ(begin % kAlignment, 0U);
    end = std::max(end, begin + aligned(buffers[at].bytes));
    for (std::size_t other = 0; other < at; ++other) {
      const std::size_t other_begin = packing.offsets[other];
      const bool overlap =
          std::max(begin, other_begin) <
          std::min(begin + buffers[at].bytes, other_begin + buffers[other].bytes);
      EXPECT_FALSE(overlap && live_together(buffers[at], buffers[other]))
          << at << " and " << other;
    }
  }
  EXPECT_EQ(packing.size, end);
}

TEST(Packing, never_lets_buffers_overlap_that_are_alive_at_once) {
  Rng rng(1);
  const auto below = [&](int count) {
    return static_cast<int>(rng.next() % static_cast<std::uint64_t>(count));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    for (int count = below(60); count >= 0; --count) {
      const int first = below(40);
      buffers.push_back({static_cast<std::size_t>(below(2000)), first, first + below(12)});
    }
    expect_apart(buffers, pack(buffers));
  }
}

TEST(Packing, of_nothing_needs_nothing) {
  EXPECT_EQ(pack({}).size, 0U);
  EXPECT_EQ(pack({{0, 0, 9}}).size, 0U);
}

TEST(Packing, uses_one_place_for_what_comes_one_after_the_other) {
  EXPECT_EQ(pack({{kUnit, 0, 1}, {kUnit, 2, 3}, {kUnit, 4, 5}}).size, kUnit);
}

TEST(Packing, keeps_apart_what_ends_where_another_begins) {
  EXPECT_EQ(pack({{kUnit, 0, 1}, {kUnit, 1, 2}, {kUnit, 2, 3}}).size, 2 * kUnit);
}

// Two small ones live beside the large one, one after the other.
TEST(Packing, lets_small_buffers_take_turns_beside_a_large_one) {
  EXPECT_EQ(pack({{kUnit, 0, 2}, {kUnit, 3, 5}, {4 * kUnit, 0, 5}}).size, 5 * kUnit);
}

// A large one goes where several small ones were that have ended.
TEST(Packing, puts_a_large_buffer_where_small_ones_were) {
  EXPECT_EQ(pack({{kUnit, 0, 1}, {kUnit, 0, 1}, {kUnit, 0, 1}, {3 * kUnit, 2, 3}}).size,
            3 * kUnit);
}

TEST(Packing, rounds_up_to_where_the_next_may_begin) {
  EXPECT_EQ(pack({{1, 0, 1}, {1, 0, 1}}).size, 2 * kUnit);
}

// No arena can be smaller than what is alive in it at one time.
std::size_t most_alive(const Plan& plan) {
  const Graph& graph = plan.graph;
  const auto shown = [&](Value value) {
    while (graph.node(value.node).op == Op::reshape) {
      value = graph.node(value.node).inputs[0];
    }
    return value;
  };
  std::map<Value, std::pair<const Place*, int>> values;  // place and last use
  for (const Step& step : plan.devices[0].steps) {
    const Node& node = graph.node(step.node);
    for (int at = 0; at < static_cast<int>(node.outputs.size()); ++at) {
      values[{step.node, at}] = {&step.outputs[static_cast<std::size_t>(at)], step.node};
    }
    for (const Value input : node.inputs) {
      if (const auto found = values.find(shown(input)); found != values.end()) {
        found->second.second = step.node;
      }
    }
  }
  for (const GraphResult& result : graph.results()) {
    if (const auto found = values.find(shown(result.value)); found != values.end()) {
      found->second.second = graph.size();
    }
  }
  std::size_t most = 0;
  for (const Step& step : plan.devices[0].steps) {
    std::set<std::size_t> offsets;  // a value and the one that it overwrites count once
    std::size_t alive = aligned(step.workspace.type.bytes());
    for (const auto& [value, use] : values) {
      const auto& [place, last] = use;
      if (place->space == Place::Space::arena && value.node <= step.node && last >= step.node &&
          offsets.insert(place->offset).second) {
        alive += aligned(place->type.bytes());
      }
    }
    most = std::max(most, alive);
  }
  return most;
}

Graph training_of_vit_base(const Precision& row) {
  VitConfig config = *vit_named("vit_base_patch16_224");
  config.classes = 1;
  const Graph forward = *with_precision(vit(config, 160, ModelMode::train), row, {});
  return with_update(with_gradients(forward, row, 1), row, {});
}

// As much as cuBLAS is usually given on an H100.
std::size_t scratch_of_products(const Graph& graph, int node) {
  return graph.node(node).op == Op::matmul ? std::size_t{32} << 20 : 0;
}

TEST(Packing, of_the_training_of_a_vit_is_near_what_nobody_can_go_below) {
  for (const char* mode : {"fp32", "amp-bf16"}) {
    for (const bool scratch : {false, true}) {
      std::vector<Target> targets(1);
      if (scratch) {
        targets[0].workspace = scratch_of_products;
      }
      const Plan plan = *lower(training_of_vit_base(*precision_named(mode)), targets);
      const auto least = static_cast<double>(most_alive(plan));
      const auto arena = static_cast<double>(plan.devices[0].arena);
      EXPECT_GE(arena, least) << mode << " " << scratch;
      EXPECT_LE(arena, 1.05 * least) << mode << " " << scratch;
    }
  }
}

}  // namespace
}  // namespace halfwatt

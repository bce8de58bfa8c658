#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/ops/verify.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/delayed_scaling.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/update.h"

namespace halfwatt {
namespace {

Graph with_gradients_of(const VitConfig& config,
                        std::int64_t batch,
                        std::string_view mode,
                        int micro_batches = 1) {
  const Precision precision = *precision_named(mode);
  auto graph = with_precision(vit(config, batch, ModelMode::train), precision, {});
  return with_gradients(*graph, precision, micro_batches);
}

VitConfig micro() { return *vit_named("vit_micro_patch4_16"); }

double tflop(const Graph& graph) {
  double sum = 0;
  for (int id = 0; id < graph.size(); ++id) {
    sum += cost(graph, id).flops;
  }
  return sum / 1e12;
}

void expect_legal(const Graph& graph, std::string_view what) {
  const auto legal = verify(graph);
  EXPECT_TRUE(legal) << what << ": " << legal.error().message;
}

TEST(Autodiff, has_a_gradient_for_every_parameter_in_every_mode) {
  for (const Precision& row : precisions()) {
    const Graph graph = with_gradients_of(micro(), 2, row.name);
    expect_legal(graph, row.name);
    const auto names = gradient_names(graph);
    EXPECT_EQ(names.size(), vit_parameters(micro()).size()) << row.name;
    for (const auto& name : names) {
      const auto gradient = graph.result("gradient:" + name);
      EXPECT_EQ(graph.type(*gradient).dtype, row.gradient) << row.name << " " << name;
      EXPECT_EQ(graph.type(*gradient).shape, graph.state(name)->type.shape);
    }
  }
}

// Section 1 of the facts on GPU performance: 16.94 TFLOP at a batch of 160 with one logit.
TEST(Autodiff, costs_what_the_field_counts) {
  VitConfig base = *vit_named("vit_base_patch16_224");
  base.classes = 1;
  EXPECT_NEAR(tflop(with_gradients_of(base, 160, "amp-bf16")), 16.94, 0.005);
}

TEST(Autodiff, gives_one_summed_gradient_to_a_parameter_that_is_used_twice) {
  Graph graph;
  Builder build(graph);
  const Value x = build.input("x", {DType::f32, Shape{4, 3}});
  const StateSpec weight{"w", StateRole::parameter, {DType::f32, Shape{3, 3}}, {}, 0};
  const Value once = build.linear(x, build.read(weight), std::nullopt);
  const Value twice = build.linear(once, build.read(weight), std::nullopt);
  const Value labels = build.input("labels", {DType::i64, Shape{4}});
  const Value valid = build.input("valid", {DType::i64, Shape()});
  graph.set_result("loss",
                   build.add(Op::cross_entropy, {twice, labels, valid}, {{"smoothing", 0.0}}));
  const Graph both = with_gradients(graph, *precision_named("fp32"), 1);
  expect_legal(both, "shared");
  EXPECT_EQ(gradient_names(both), std::vector<std::string>{"w"});
  EXPECT_EQ(both.node(both.result("gradient:w")->node).op, Op::add);
}

TEST(Update, is_legal_in_every_mode_and_writes_each_state_once) {
  for (const Precision& row : precisions()) {
    for (const auto kind : {Optimizer::Kind::adamw, Optimizer::Kind::sgd}) {
      Optimizer optimizer;
      optimizer.kind = kind;
      optimizer.average = 0.999;
      optimizer.max_norm = 1;
      const Graph graph = with_update(with_gradients_of(micro(), 2, row.name), row, optimizer);
      expect_legal(graph, row.name);
      std::set<std::string> written;
      for (const Node& node : graph.nodes()) {
        if (node.op == Op::write) {
          written.insert(node.attributes.word("state"));
        }
      }
      EXPECT_EQ(written.size(), graph.states().size()) << row.name;
    }
  }
}

TEST(Update, writes_the_copy_of_a_weight_with_the_weight) {
  const Precision row = *precision_named("amp-fp16");
  const Graph graph = with_update(with_gradients_of(micro(), 2, row.name), row, {});
  int copies = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::write && node.attributes.word("state") == "head.weight@f16") {
      const Node& cast = graph.node(node.inputs[0].node);
      EXPECT_EQ(cast.op, Op::cast);
      EXPECT_EQ(graph.node(cast.inputs[0].node).op, Op::adamw);
      ++copies;
    }
  }
  EXPECT_EQ(copies, 1);
}

std::vector<std::string> written_by(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::write) {
      all.push_back(node.attributes.word("state"));
    }
  }
  return all;
}

/// Products that look for the largest magnitudes of their operands.
int observing(const Graph& graph, Phase phase) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        return node.attributes.flag("observe") && node.phase == phase;
      }));
}

TEST(Magnitudes, are_looked_for_where_somebody_reads_them_and_nowhere_else) {
  const Precision delayed = *precision_named("fp8-delayed");
  Graph whole = with_update(with_gradients_of(micro(), 2, "fp8-delayed"), delayed, {});
  Graph part = with_accumulation(with_gradients_of(micro(), 2, "fp8-delayed", 4), delayed);
  for (Graph* graph : {&whole, &part}) {
    EXPECT_EQ(observing(*graph, Phase::backward), 2 * 4 * 2);
    drop_unread_magnitudes(*graph);
    expect_legal(*graph, "without them");
    EXPECT_EQ(observing(*graph, Phase::forward), 2 * 4) << "input and weight";
    EXPECT_EQ(observing(*graph, Phase::backward), 2 * 4)
        << "of the output's gradient, which two products round, the first";
  }
  Graph current =
      with_update(with_gradients_of(micro(), 2, "fp8"), *precision_named("fp8"), {});
  drop_unread_magnitudes(current);
  expect_legal(current, "fp8");
  EXPECT_EQ(observing(current, Phase::forward) + observing(current, Phase::backward), 0);
}

TEST(Frozen, parameters_have_no_gradient_no_moment_and_no_average) {
  const std::vector<std::string> frozen = {"patch_embed", "blocks.0.*", "*.bias"};
  for (const Precision& row : precisions()) {
    const Graph forward = *with_precision(vit(micro(), 2, ModelMode::train), row, {});
    const Graph both = with_gradients(forward, row, 1, frozen);
    for (const std::string& name : gradient_names(both)) {
      EXPECT_FALSE(any_names(frozen, name)) << name;
    }
    EXPECT_TRUE(both.result("gradient:blocks.1.attn.qkv.weight"));
    EXPECT_TRUE(both.result("gradient:cls_token")) << "it is below what is frozen";
    Optimizer optimizer;
    optimizer.average = 0.9;
    const Graph whole = with_update(both, row, optimizer);
    expect_legal(whole, row.name);
    for (const StateSpec& state : whole.states()) {
      const bool is_kept = state.role == StateRole::moment || state.role == StateRole::average;
      EXPECT_FALSE(is_kept && any_names(frozen, state.of)) << state.name;
    }
    for (const std::string& name : written_by(whole)) {
      const StateSpec& state = *whole.state(name);
      EXPECT_FALSE(state.role != StateRole::amax &&
                   any_names(frozen, state.of.empty() ? name : state.of))
          << name;
    }
    const Graph evaluation = with_averages(forward, frozen);
    EXPECT_EQ(evaluation.state("blocks.0.norm1.weight.ema"), nullptr);
    EXPECT_NE(evaluation.state("blocks.1.norm1.weight.ema"), nullptr);
  }
}

TEST(Frozen, layers_below_those_that_learn_need_no_backward_part) {
  const Precision row = *precision_named("fp32");
  const Graph forward = vit(micro(), 2, ModelMode::train);
  const std::vector<std::string> frozen = {"cls_token", "pos_embed", "patch_embed", "blocks.*",
                                           "norm"};
  const Graph both = with_gradients(forward, row, 1, frozen);
  EXPECT_EQ(gradient_names(both), (std::vector<std::string>{"head.weight", "head.bias"}));
  for (const Node& node : both.nodes()) {
    EXPECT_FALSE(node.phase == Phase::backward && node.name.starts_with("blocks")) << node.name;
  }
}

TEST(Frozen, patterns_that_name_nothing_or_leave_nothing_are_refused) {
  Target target;
  target.support = [](const Graph&, int) { return Support(); };
  target.workspace = [](const Graph&, int) { return std::size_t{0}; };
  Compilation asked;
  asked.precision = *precision_named("fp32");
  asked.optimizer = Optimizer();
  asked.targets = {target};
  const auto says = [&] {
    const auto compiled = compile(vit(micro(), 2, ModelMode::train), asked);
    return compiled ? "nothing" : compiled.error().message;
  };
  EXPECT_EQ(says(), "nothing");
  asked.freeze = {"blocks.*", "blocks.7.*"};
  EXPECT_EQ(says(),
            "--freeze blocks.7.*: no parameter or layer is called so; the first parameter is "
            "cls_token");
  asked.freeze = {"*"};
  EXPECT_EQ(says(), "--freeze *: leaves nothing that learns");
  asked.freeze = {};
  asked.optimizer->no_decay = {"haed"};
  EXPECT_EQ(says(),
            "--no-decay haed: no parameter or layer is called so; the first parameter is "
            "cls_token");
}

TEST(Update, decays_no_vectors_tokens_or_positions_nor_what_it_is_told_not_to) {
  const Precision row = *precision_named("fp32");
  Optimizer optimizer;
  optimizer.decay = 0.05;
  optimizer.no_decay = {"head", "blocks.0.*"};
  const Graph graph = with_update(with_gradients_of(micro(), 2, "fp32"), row, optimizer);
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::adamw) {
      const bool decays = node.attributes.number("decay") != 0;
      const bool is_matrix = graph.state(node.name)->type.shape.rank() > 1;
      EXPECT_EQ(decays, is_matrix && node.name != "cls_token" && node.name != "pos_embed" &&
                            !node.name.starts_with("head") &&
                            !node.name.starts_with("blocks.0"))
          << node.name;
    }
  }
}

TEST(Update, gives_parameters_of_one_share_one_rate_and_fuses_them) {
  const Precision row = *precision_named("fp32");
  Optimizer optimizer;
  optimizer.rate_shares = {{"head.weight", 1.0}, {"norm.bias", 0.5}, {"norm.weight", 0.5}};
  const Graph graph = with_update(with_gradients_of(micro(), 2, "fp32"), row, optimizer);
  expect_legal(graph, "shares");
  std::map<std::string, Value> rates;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::adamw) {
      rates[node.name] = node.inputs[5];
    }
  }
  EXPECT_EQ(rates.at("norm.bias"), rates.at("norm.weight"));
  EXPECT_EQ(rates.at("head.weight"), rates.at("head.bias"));
  EXPECT_NE(rates.at("head.weight"), rates.at("norm.bias"));
  EXPECT_EQ(graph.node(rates.at("norm.bias").node).attributes.number("factor"), 0.5);
}

TEST(Update, skips_only_where_the_loss_is_scaled) {
  const auto skip_of = [](std::string_view mode) {
    const Precision row = *precision_named(mode);
    const Graph graph = with_update(with_gradients_of(micro(), 2, mode), row, {});
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::adamw) {
        return graph.node(node.inputs[7].node).op;
      }
    }
    return Op::input;
  };
  EXPECT_EQ(skip_of("amp-fp16"), Op::check_gradients);
  EXPECT_EQ(skip_of("fp16"), Op::check_gradients);
  EXPECT_EQ(skip_of("amp-bf16"), Op::constant);
  EXPECT_EQ(skip_of("O3"), Op::constant);
}

TEST(Update, of_accumulated_gradients_is_a_graph_of_its_own) {
  for (const Precision& row : precisions()) {
    const Graph micro_graph =
        with_accumulation(with_gradients_of(micro(), 2, row.name, 4), row);
    expect_legal(micro_graph, row.name);
    const Graph update = update_of(micro_graph, row, {});
    expect_legal(update, row.name);
    const StateSpec* sum = update.state("head.weight.gradient");
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->type.dtype, row.accumulated);
  }
}

TEST(Update, decays_matrices_and_not_vectors_and_positions) {
  const Precision row = *precision_named("fp32");
  const Graph graph = with_update(with_gradients_of(micro(), 2, row.name), row, {});
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::adamw) {
      const bool matrix = node.name.find("weight") != std::string::npos &&
                          node.name.find("norm") == std::string::npos;
      EXPECT_EQ(node.attributes.number("decay") > 0, matrix) << node.name;
    }
  }
}

}  // namespace
}  // namespace halfwatt

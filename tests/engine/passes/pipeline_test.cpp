#include "engine/passes/pipeline.h"

#include <gtest/gtest.h>

#include "engine/ops/builder.h"
#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"
#include "engine/passes/fuse.h"
#include "engine/passes/made_up.h"
#include "engine/passes/meaning.h"
#include "engine/passes/recompute.h"

namespace halfwatt {
namespace {

const VitConfig kMicro = *vit_named("vit_micro_patch4_16");

Compilation training(std::string_view mode = "amp-fp16") {
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.optimizer = Optimizer();
  asked.targets = {made_up("cpu:0"), made_up("cpu:1")};
  return asked;
}

Compiled compiled(const Compilation& asked, ModelMode mode = ModelMode::train) {
  auto result = compile(vit(kMicro, 2, mode), asked);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

TEST(Pipeline, carries_out_all_passes_in_order_and_times_them) {
  const Compiled all = compiled(training());
  ASSERT_EQ(all.passes.size(), pass_names().size());
  for (std::size_t at = 0; at < all.passes.size(); ++at) {
    EXPECT_EQ(all.passes[at].name, pass_names()[at]);
    EXPECT_GT(all.passes[at].took, Seconds(0));
    EXPECT_FALSE(all.passes[at].skipped);
  }
  EXPECT_EQ(text(all.graph), text(with_fused(step_of(kMicro, 2, "amp-fp16"))));
  EXPECT_FALSE(all.update);
}

TEST(Pipeline, makes_two_graphs_of_a_step_of_several_micro_batches) {
  Compilation asked = training();
  asked.micro_batches = 4;
  asked.recompute = true;
  asked.place = *placement_rules("blocks.*=cpu:1");
  const Compiled both = compiled(asked);
  ASSERT_TRUE(both.update);
  EXPECT_TRUE(verify(*both.update));
  EXPECT_TRUE(both.update->state("head.weight.gradient"));
  EXPECT_TRUE(both.graph.state("head.weight.gradient"));
}

TEST(Pipeline, makes_no_gradients_for_inference) {
  Compilation asked = training();
  asked.optimizer.reset();
  const Compiled forward = compiled(asked, ModelMode::infer);
  for (const Node& node : forward.graph.nodes()) {
    EXPECT_EQ(node.phase, Phase::forward);
  }
}

TEST(Pipeline, recomputes_and_places_to_the_same_bits) {
  Compilation asked = training();
  asked.skip = {"fuse"};
  const auto plain = meanings(compiled(asked).graph);
  asked.recompute = true;
  asked.place = *placement_rules("blocks.1.*=cpu:1");
  EXPECT_EQ(meanings(compiled(asked).graph), plain);
}

TEST(Pipeline, skips_and_prints_a_pass_by_its_name) {
  Compilation asked = training();
  asked.recompute = true;
  asked.skip = {"recompute", "fuse"};
  asked.print_after = "precision";
  const Compiled without = compiled(asked);
  for (const Compiled::Pass& pass : without.passes) {
    EXPECT_EQ(pass.skipped, pass.name == "recompute" || pass.name == "fuse") << pass.name;
  }
  EXPECT_EQ(text(without.graph), text(step_of(kMicro, 2, "amp-fp16")));
  const auto model = with_precision(vit(kMicro, 2, ModelMode::train), asked.precision, {});
  EXPECT_EQ(without.printed, text(*model));
  for (const std::string_view pass : pass_names()) {
    asked.skip = {std::string(pass)};
    compiled(asked);
  }
}

TEST(Pipeline, refuses_passes_that_are_not_there) {
  Compilation asked = training();
  asked.skip = {"fusion"};
  const auto refused = compile(vit(kMicro, 2, ModelMode::train), asked);
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.error().message.find("--skip-pass fusion: no such pass; there are precision"),
      std::string::npos);
  asked.skip.clear();
  asked.print_after = "lower";
  EXPECT_FALSE(compile(vit(kMicro, 2, ModelMode::train), asked));
}

TEST(Pipeline, refuses_to_train_with_sums_in_fp16_and_lets_an_inference_have_them) {
  const std::string words = "param=fp16,compute=fp16,output=fp16,accumulate=fp16";
  Compilation all = training(words);
  Compilation some = training();
  some.overrides = {*precision_override("head.*=" + words)};
  for (Compilation* asked : {&all, &some}) {
    const auto refused = compile(vit(kMicro, 2, ModelMode::train), *asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(refused.error().message.find("accumulate=fp16 is for an inference"), 0U)
        << refused.error().message;
    asked->optimizer.reset();
    const Compiled inference = compiled(*asked, ModelMode::infer);
    for (const Node& node : inference.graph.nodes()) {
      const bool may = node.op == Op::matmul && (asked == &all || node.name == "head");
      EXPECT_EQ(node.attributes.has("accumulate"), may) << node.name;
    }
  }
}

TEST(Pipeline, names_pass_node_and_rule_of_a_graph_that_is_not_legal) {
  Graph graph = vit(kMicro, 2, ModelMode::train);
  graph.set_result("odd", {graph.size() + 5, 0});
  Compilation asked = training();
  asked.skip = {"precision", "autodiff", "update", "placement", "recompute", "fuse"};
  const auto refused = compile(graph, asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "after pass precision: result odd is no output of a node");
}

}  // namespace
}  // namespace halfwatt

#include "engine/models/vit.h"

#include <gtest/gtest.h>

#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"

namespace halfwatt {
namespace {

VitConfig named(std::string_view name, std::int64_t classes = 1000) {
  auto config = vit_named(name);
  EXPECT_TRUE(config) << name;
  config->classes = classes;
  return *config;
}

double flops(const Graph& graph) {
  double sum = 0;
  for (int id = 0; id < graph.size(); ++id) {
    sum += cost(graph, id).flops;
  }
  return sum;
}

std::int64_t parameters(const VitConfig& config) {
  std::int64_t sum = 0;
  for (const StateSpec& state : vit_parameters(config)) {
    sum += state.type.shape.elements();
  }
  return sum;
}

// Section 2.1 of the facts on mixed precision.
TEST(Vit, has_the_parameters_of_timm) {
  EXPECT_EQ(parameters(named("vit_tiny_patch16_224")), 5'717'416);
  EXPECT_EQ(parameters(named("vit_small_patch16_224")), 22'050'664);
  EXPECT_EQ(parameters(named("vit_base_patch16_224")), 86'567'656);
  EXPECT_EQ(parameters(named("vit_large_patch16_224")), 304'326'632);
  EXPECT_EQ(vit_parameters(named("vit_base_patch16_224")).size(), 152U);
}

TEST(Vit, costs_what_the_field_counts) {
  const auto gflop = [](std::string_view name) {
    return flops(vit(named(name), 1, ModelMode::infer)) / 1e9;
  };
  EXPECT_NEAR(gflop("vit_tiny_patch16_224"), 2.507, 0.001);
  EXPECT_NEAR(gflop("vit_small_patch16_224"), 9.198, 0.001);
  EXPECT_NEAR(gflop("vit_base_patch16_224"), 35.13, 0.01);
  EXPECT_NEAR(gflop("vit_large_patch16_224"), 123.1, 0.1);
}

TEST(Vit, is_legal_in_every_mode_and_with_every_head) {
  for (const auto mode : {ModelMode::infer, ModelMode::evaluate, ModelMode::train}) {
    for (const std::int64_t classes : {1, 10}) {
      for (const auto pool : {VitConfig::Pool::token, VitConfig::Pool::mean}) {
        VitConfig config = named("vit_micro_patch4_16", classes);
        config.pool = pool;
        config.drop_path = 0.1;
        config.dropout = 0.1;
        const Graph graph = vit(config, 2, mode);
        const auto legal = verify(graph);
        EXPECT_TRUE(legal) << legal.error().message;
        EXPECT_EQ(graph.type(*graph.result("logits")).shape, (Shape{2, classes}));
      }
    }
  }
}

TEST(Vit, normalises_the_bytes_of_pictures_before_all_else) {
  for (const auto mode : {ModelMode::infer, ModelMode::evaluate, ModelMode::train}) {
    const Graph graph = vit(named("vit_micro_patch4_16"), 2, mode, 0,
                            Normalisation{{0, 0.5F, 1}, {1, 0.5F, 0.25F}});
    const auto legal = verify(graph);
    EXPECT_TRUE(legal) << legal.error().message;
    EXPECT_EQ(graph.node(0).outputs[0], (TensorType{DType::u8, Shape{2, 3, 16, 16}}));
    const Node& first = graph.node(1);
    EXPECT_EQ(first.op, Op::normalise);
    EXPECT_EQ(text(first.attributes), "mean=0,0.5,1 deviation=1,0.5,0.25");
    EXPECT_EQ(first.name, "patch_embed");
  }
}

TEST(Vit, reads_each_parameter_in_the_layer_that_it_is_named_after) {
  const Graph graph = vit(named("vit_micro_patch4_16"), 2, ModelMode::infer);
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::read) {
      const std::string& state = node.attributes.word("state");
      EXPECT_EQ(state.rfind(node.name, 0), 0U) << state << " in " << node.name;
    }
  }
}

TEST(Vit, is_refused_under_a_name_that_timm_does_not_have) {
  for (const auto name :
       {"vit_huge_patch16_224", "vit_base_patch14_224", "resnet50", "vit_base_patch16_",
        "vit_micro_patch0_16", "vit_micro_patch5_16", "vit_micro_patch1_10000000"}) {
    const auto config = vit_named(name);
    ASSERT_FALSE(config) << name;
    EXPECT_NE(config.error().message.find("vit_{tiny,small,base,large}"), std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt

#include "engine/passes/precision.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/ops/delayed_scaling.h"
#include "engine/ops/op_def.h"
#include "engine/ops/verify.h"

namespace halfwatt {
namespace {

Graph micro(const Precision& precision, std::vector<PrecisionOverride> overrides = {}) {
  const auto config = vit_named("vit_micro_patch4_16");
  auto graph = with_precision(vit(*config, 2, ModelMode::train), precision, overrides);
  EXPECT_TRUE(graph) << graph.error().message;
  const auto legal = verify(*graph);
  EXPECT_TRUE(legal) << precision.name << ": " << legal.error().message;
  return *graph;
}

// By layer and op: the dtype of the first output.
std::map<std::string, std::string> dtypes(const Graph& graph) {
  std::map<std::string, std::string> all;
  for (const Node& node : graph.nodes()) {
    if (definition(node.op).numeric != NumericClass::source && !node.outputs.empty()) {
      all[node.name + " " + std::string(name_of(node.op))] = text(node.outputs[0].dtype);
    }
  }
  return all;
}

TEST(Precision, makes_a_legal_graph_in_every_mode) {
  for (const Precision& row : precisions()) {
    micro(row);
  }
}

// Section 1.1 of the facts on mixed precision: what PyTorch's autocast gives on CUDA.
TEST(Precision, puts_the_dtypes_of_autocast_on_the_edges) {
  const auto found = dtypes(micro(*precision_named("amp-fp16")));
  EXPECT_EQ(found.at("patch_embed.proj convolution"), "f16");
  EXPECT_EQ(found.at("pos_embed concatenate"), "f32");
  EXPECT_EQ(found.at("pos_embed add"), "f32");
  EXPECT_EQ(found.at("blocks.0.norm1 layer_norm"), "f32");
  EXPECT_EQ(found.at("blocks.0.attn.qkv matmul"), "f16");
  EXPECT_EQ(found.at("blocks.0.attn attention"), "f16");
  EXPECT_EQ(found.at("blocks.0.attn.proj matmul"), "f16");
  EXPECT_EQ(found.at("blocks.0 add"), "f32");
  EXPECT_EQ(found.at("blocks.0.mlp.act gelu"), "f16");
  EXPECT_EQ(found.at("norm layer_norm"), "f32");
  EXPECT_EQ(found.at("head matmul"), "f16");
  EXPECT_EQ(found.at("loss cross_entropy"), "f32");
}

TEST(Precision, casts_each_weight_once_and_not_in_the_step) {
  const Graph graph = micro(*precision_named("amp-bf16"));
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::cast) {
      EXPECT_NE(graph.node(node.inputs[0].node).op, Op::read) << node.name;
    }
  }
  const StateSpec* copy = graph.state("blocks.0.attn.qkv.weight@bf16");
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->role, StateRole::copy);
  EXPECT_EQ(copy->of, "blocks.0.attn.qkv.weight");
  EXPECT_EQ(graph.state("blocks.0.norm1.weight@bf16"), nullptr);
}

TEST(Precision, reads_no_parameter_of_which_only_the_copy_is_used) {
  const Graph graph = micro(*precision_named("amp-bf16"));
  EXPECT_EQ(graph.reader("blocks.0.attn.qkv.weight"), std::nullopt);
  EXPECT_TRUE(graph.reader("blocks.0.attn.qkv.weight@bf16"));
  EXPECT_TRUE(graph.reader("blocks.0.norm1.weight"));
  EXPECT_TRUE(graph.state("blocks.0.attn.qkv.weight"));
}

TEST(Precision, keeps_a_pure_model_in_one_dtype_but_for_the_loss) {
  for (const auto& [where, dtype] : dtypes(micro(*precision_named("bf16")))) {
    EXPECT_TRUE(dtype == "bf16" || where.find("loss") == 0) << where << " " << dtype;
  }
  for (const auto& [where, dtype] : dtypes(micro(*precision_named("O3")))) {
    EXPECT_EQ(dtype, "f16") << where;
  }
}

TEST(Precision, casts_what_bytes_were_normalised_to_as_it_casts_images) {
  Graph graph;
  Builder build(graph);
  const Shape shape{2, 1, 4, 4};
  const Value numbers = build.input("numbers", {DType::f32, shape});
  const Value bytes = build.input("bytes", {DType::u8, shape});
  const Value normalised =
      build.add(Op::normalise, {bytes},
                {{"mean", std::vector<double>{0.5}}, {"deviation", std::vector<double>{2}}});
  graph.set_result("of numbers", build.add(Op::transpose, {numbers}));
  graph.set_result("of bytes", build.add(Op::transpose, {normalised}));
  for (const auto& [mode, dtype] : {std::pair{"fp32", DType::f32},
                                    {"amp-bf16", DType::f32},
                                    {"bf16", DType::bf16},
                                    {"fp64", DType::f64}}) {
    const Graph cast = *with_precision(graph, *precision_named(mode), {});
    EXPECT_EQ(cast.type(*cast.result("of numbers")).dtype, dtype) << mode;
    EXPECT_EQ(cast.type(*cast.result("of bytes")).dtype, dtype) << mode;
  }
}

TEST(Precision, has_masters_where_the_row_says_so) {
  const Graph graph = micro(*precision_named("O2"));
  EXPECT_EQ(graph.state("head.weight")->type.dtype, DType::f32);
  EXPECT_EQ(graph.state("head.weight@f16")->type.dtype, DType::f16);
  EXPECT_EQ(graph.reader("head.weight"), std::nullopt);
}

TEST(Precision, rounds_the_operands_of_blocks_to_fp8_and_no_others) {
  const Graph graph = micro(*precision_named("fp8"));
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::matmul) {
      const bool block = node.name.find("blocks.") == 0;
      EXPECT_EQ(node.attributes.has("math_a"), block) << node.name;
      EXPECT_EQ(node.outputs[0].dtype, DType::bf16) << node.name;
    }
  }
}

TEST(Precision, rounds_the_operands_of_products_convolutions_and_attention_to_tf32) {
  const Graph graph = micro(*precision_named("tf32"));
  for (const Node& node : graph.nodes()) {
    const bool rounds =
        node.op == Op::matmul || node.op == Op::convolution || node.op == Op::attention;
    EXPECT_EQ(node.attributes.has("math_a"), rounds) << node.name;
  }
}

TEST(Precision, scales_by_a_history_where_the_row_says_so) {
  const Graph graph = micro(*precision_named("fp8-delayed"));
  std::size_t scaled = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::matmul || node.name.find("blocks.") != 0) {
      EXPECT_FALSE(node.attributes.has("scaling")) << node.name;
      continue;
    }
    ++scaled;
    EXPECT_EQ(node.attributes.word("scaling"), node.name);
    for (const auto operand : {Fp8Operand::input, Fp8Operand::weight, Fp8Operand::gradient}) {
      const StateSpec* history = graph.state(fp8_history_name(node.name, operand));
      const StateSpec* scale = graph.state(fp8_scale_name(node.name, operand));
      ASSERT_TRUE(history && scale) << node.name;
      EXPECT_EQ(history->type, (TensorType{DType::f32, Shape{1024}}));
      EXPECT_EQ(scale->role, StateRole::amax);
      EXPECT_EQ(scale->initial, 1);
      EXPECT_EQ(scale->of, node.name + ".weight") << "it is where the weight is";
    }
  }
  EXPECT_EQ(scaled, 8U);
}

TEST(Precision, has_the_numbers_of_delayed_scaling_in_its_row) {
  Precision row = *precision_named("fp8-delayed");
  ASSERT_TRUE(row.delayed);
  EXPECT_EQ(row.delayed->history, 1024);
  EXPECT_EQ(row.delayed->margin, 0);
  row.delayed = DelayedScaling{16, DelayedScaling::Algorithm::most_recent, 2};
  const Graph graph = micro(row);
  const std::string layer = "blocks.1.mlp.fc2";
  EXPECT_EQ(graph.state(fp8_history_name(layer, Fp8Operand::weight))->type.shape, Shape{16});
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::matmul && node.name == layer) {
      EXPECT_EQ(node.attributes.integer("margin"), 2);
      EXPECT_EQ(node.attributes.word("algorithm"), "most_recent");
    }
  }
}

TEST(Precision, is_told_in_the_documentation_whatever_its_name) {
  std::ifstream file("docs/commands.md");
  const std::string docs(std::istreambuf_iterator<char>(file), {});
  const std::size_t section = docs.find("## Precisions");
  ASSERT_NE(section, std::string::npos);
  for (const Precision& row : precisions()) {
    EXPECT_NE(docs.find("`" + row.name + "`", section), std::string::npos) << row.name;
    EXPECT_NE(precision_names().find(row.name + ", "), std::string::npos) << row.name;
  }
}

TEST(Precision, obeys_overrides_by_layer_the_last_one_first) {
  const auto fp32 = precision_override("head.*=fp32");
  const auto blocks = precision_override("blocks.0.*=fp32");
  ASSERT_TRUE(fp32 && blocks);
  const auto found = dtypes(micro(*precision_named("amp-bf16"), {*fp32, *blocks}));
  EXPECT_EQ(found.at("head matmul"), "f32");
  EXPECT_EQ(found.at("blocks.0.attn.qkv matmul"), "f32");
  EXPECT_EQ(found.at("blocks.1.attn.qkv matmul"), "bf16");
}

TEST(Precision, refuses_a_pattern_that_matches_no_layer) {
  const auto config = vit_named("vit_micro_patch4_16");
  const auto wrong = precision_override("block.0.*=fp32");
  const auto graph =
      with_precision(vit(*config, 2, ModelMode::train), *precision_named("bf16"), {{*wrong}});
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("block.0.*"), std::string::npos);
}

TEST(Precision, is_said_as_a_triple_too) {
  const auto row = precision_named("param=bf16,compute=bf16,output=f32");
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(row->parameter, DType::bf16);
  EXPECT_EQ(row->output, DType::f32);
  EXPECT_TRUE(precision_named("param=fp32,compute=fp16,output=fp16"));
  for (const auto wrong :
       {"param=bf16", "param=bf16,compute=x,output=f32", "a=b", "half",
        "param=i8,compute=i8,output=i8", "bf16,", "param=f16,param=f16,compute=f16,output=f16",
        "compute=fp16,output=fp16,accumulate=fp16"}) {
    const auto refused = precision_named(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("amp-bf16"), std::string::npos);
  }
}

TEST(Precision, adds_up_in_fp16_only_where_that_is_said_and_all_else_of_products_is) {
  for (const Precision& row : precisions()) {
    EXPECT_FALSE(accumulates_narrow(row, {})) << row.name;
  }
  const auto half = precision_named("param=fp32,compute=fp16,output=fp16,accumulate=fp16");
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_TRUE(accumulates_narrow(*half, {}));
  EXPECT_TRUE(precision_named("param=fp32,compute=bf16,output=bf16,accumulate=fp32"));
  for (const auto wrong : {"param=fp16,compute=bf16,output=fp16,accumulate=fp16",
                           "param=fp16,compute=fp16,output=fp32,accumulate=fp16",
                           "param=bf16,compute=bf16,output=bf16,accumulate=bf16"}) {
    const auto refused = precision_named(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("where compute and output are fp16"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt

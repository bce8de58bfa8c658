// Dtypes on the edges, forward and backward, against those that PyTorch's autocast had on a
// GPU: tests/golden/engine/autocast_edges.txt.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>

#include "engine/models/vit.h"
#include "engine/ops/op_def.h"
#include "engine/passes/autodiff.h"

namespace halfwatt {
namespace {

VitConfig config(bool token) {
  VitConfig vit = *vit_named("vit_micro_patch4_16");
  vit.classes = token ? 10 : 1;
  vit.pool = token ? VitConfig::Pool::token : VitConfig::Pool::mean;
  return vit;
}

Graph training_graph(std::string_view dtype, bool token) {
  const Precision precision = *precision_named(dtype == "f16" ? "amp-fp16" : "amp-bf16");
  const auto forward = with_precision(vit(config(token), 2, ModelMode::train), precision, {});
  return with_gradients(*forward, precision, 1);
}

/// An edge: the output of the `nth` node of that name and op in the forward pass; and the node
/// of the backward pass that takes its gradient, as which input.
struct Edge {
  std::string name;
  Op op;
  int nth;
  Op taker;
};

Edge edge(const std::string& text) {
  static const std::map<std::string, Edge> kInBlock = {
      {"norm1", {".norm1", Op::layer_norm, 0, Op::layer_norm_gradient}},
      {"qkv", {".attn.qkv", Op::matmul, 0, Op::matmul}},
      {"attention", {".attn", Op::attention, 0, Op::attention_gradient}},
      {"proj", {".attn.proj", Op::matmul, 0, Op::matmul}},
      {"residual of attention", {"", Op::add, 0, Op::cast}},
      {"norm2", {".norm2", Op::layer_norm, 0, Op::layer_norm_gradient}},
      {"fc1", {".mlp.fc1", Op::matmul, 0, Op::matmul}},
      {"gelu", {".mlp.act", Op::gelu, 0, Op::gelu_gradient}},
      {"fc2", {".mlp.fc2", Op::matmul, 0, Op::matmul}},
      {"residual of mlp", {"", Op::add, 1, Op::cast}}};
  static const std::map<std::string, Edge> kAround = {
      {"patch_embed.proj",
       {"patch_embed.proj", Op::convolution, 0, Op::convolution_weight_gradient}},
      {"tokens with positions", {"pos_embed", Op::add, 0, Op::sum_to}},
      {"norm", {"norm", Op::layer_norm, 0, Op::layer_norm_gradient}},
      {"fc_norm", {"fc_norm", Op::layer_norm, 0, Op::layer_norm_gradient}},
      {"head", {"head", Op::matmul, 0, Op::matmul}}};
  std::smatch match;
  if (std::regex_match(text, match, std::regex(R"((blocks\.\d+) (.*))"))) {
    Edge found = kInBlock.at(match[2]);
    found.name = match[1].str() + found.name;
    return found;
  }
  return kAround.at(text);
}

const Node* find(const Graph& graph, const Edge& edge, Phase phase, Op op, int nth) {
  for (const Node& node : graph.nodes()) {
    if (node.phase == phase && node.op == op && node.name == edge.name && nth-- == 0) {
      return &node;
    }
  }
  return nullptr;
}

std::string text_of(const Graph& graph, const Edge& edge) {
  const Node* forward = find(graph, edge, Phase::forward, edge.op, edge.nth);
  // The first residual sum is the last that the backward comes to.
  const Node* backward =
      find(graph, edge, Phase::backward, edge.taker,
           edge.op == Op::add && edge.nth == 0 && edge.name != "pos_embed" ? 1 : 0);
  EXPECT_TRUE(forward && backward) << edge.name;
  if (!forward || !backward) {
    return "";
  }
  return std::string(text(forward->outputs[0].dtype)) + ", gradient " +
         std::string(text(graph.type(backward->inputs[0]).dtype));
}

TEST(AutocastEdges, are_those_of_pytorch_on_a_gpu) {
  std::ifstream golden("tests/golden/engine/autocast_edges.txt");
  ASSERT_TRUE(golden);
  Graph graph;
  int edges = 0;
  const std::regex heading(R"(\[(f16|bf16), (token|avg), \d+ classes\])");
  const std::regex line_form(R"((parameter )?(.*): ((?:b?f16|f32), gradient (?:b?f16|f32)))");
  for (std::string line; std::getline(golden, line);) {
    std::smatch match;
    if (std::regex_match(line, match, heading)) {
      graph = training_graph(match[1].str(), match[2] == "token");
    } else if (std::regex_match(line, match, line_form)) {
      const std::string name = match[2];
      if (match[1].matched) {
        const DType gradient = graph.type(*graph.result("gradient:" + name)).dtype;
        EXPECT_EQ("f32, gradient " + std::string(text(gradient)), match[3]) << line;
      } else if (name == "loss") {
        EXPECT_EQ(graph.type(*graph.result("loss")).dtype, DType::f32);
      } else if (name != "pooled" && name != "norm before the head") {
        EXPECT_EQ(text_of(graph, edge(name)), match[3]) << line;
      }
      ++edges;
    }
  }
  EXPECT_GT(edges, 200);
}

}  // namespace
}  // namespace halfwatt

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/update.h"

namespace halfwatt {
namespace {

// On a difference, what there is now is left beside the golden's name in gtest's folder for
// temporary files: to be looked at, and to become the golden if it is right.
void expect_golden(const Graph& graph, const std::string& name) {
  const std::string path = "tests/golden/engine/" + name;
  std::ifstream file(path);
  std::ostringstream golden;
  golden << file.rdbuf();
  const std::string now = text(graph);
  if (golden.str() == now) {
    return;
  }
  const std::string left = testing::TempDir() + name;
  std::ofstream(left) << now;
  ADD_FAILURE() << "diff " << path << " " << left;
}

Graph in_amp(const Precision& precision) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.depth = 1;
  config.classes = 10;
  return *with_precision(vit(config, 2, ModelMode::train), precision, {});
}

TEST(Text, of_a_vit_in_mixed_precision_is_as_the_golden_says) {
  expect_golden(in_amp(*precision_named("amp-fp16")), "micro_vit.graph.txt");
}

TEST(Text, of_the_training_of_a_vit_is_as_the_golden_says) {
  const Precision precision = *precision_named("amp-fp16");
  const Graph graph =
      with_update(with_gradients(in_amp(precision), precision, 1), precision, {});
  expect_golden(graph, "micro_vit_training.graph.txt");
}

TEST(Text, shows_phases_devices_layers_and_the_output_that_is_meant) {
  Graph graph;
  Builder build(graph);
  const TensorType type{DType::f16, Shape{2, 4}};
  const Value x = build.input("x", type);
  build.set_name("norm");
  const Value w = build.read({"w", StateRole::parameter, {DType::f32, Shape{4}}, {}, 0});
  const Value y = build.add(Op::layer_norm, {x, w, w}, {{"eps", 1e-6}});
  build.set_phase(Phase::update);
  build.set_device(1);
  const Value there =
      build.add(Op::transfer, {Builder::output(y, 2)}, {{"from", std::int64_t{0}}});
  graph.declare({"m", StateRole::statistics, {DType::f32, Shape{2}}, {}, 0});
  build.write("m", there);
  graph.set_result("y", y);
  EXPECT_EQ(text(graph),
            "state w : parameter f32 4\n"
            "state m : statistics f32 2\n"
            "forward:\n"
            "  %0 = input() [input=x dtype=f16 shape=2x4] : f16 2x4\n"
            "  %1 = read() [state=w dtype=f32 shape=4] : f32 4  # norm\n"
            "  %2 = layer_norm(%0, %1, %1) [eps=1e-06] : f16 2x4, f32 2, f32 2  # norm\n"
            "update:\n"
            "  %3 = transfer(%2.2) [from=0] : f32 2 @1  # norm\n"
            "  write(%3) [state=m] @1  # norm\n"
            "result y = %2.0\n");
}

TEST(Text, of_every_role_and_phase_is_a_word_of_its_own) {
  constexpr int kRoles = static_cast<int>(StateRole::average) + 1;
  std::vector<std::string_view> words;
  words.reserve(kRoles);
  for (int role = 0; role < kRoles; ++role) {
    words.push_back(text(static_cast<StateRole>(role)));
  }
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
  EXPECT_EQ(text(StateRole::average), "average");
  EXPECT_EQ(text(Phase::backward), "backward");
}

}  // namespace
}  // namespace halfwatt

// What the tasks are made of: their plans, their steps, their numbers.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/null/null_backend.h"
#include "workloads/infer_task.h"
#include "workloads/plan_run.h"
#include "workloads/product_task.h"
#include "workloads/random_data.h"
#include "workloads/train_task.h"

namespace halfwatt {
namespace {

Setting setting(const std::string& precision, double batch) {
  Setting all;
  all.set("precision", precision);
  all.set("batch", batch);
  return all;
}

ModelChoice micro() {
  ModelChoice choice{*vit_named("vit_micro_patch4_16")};
  choice.model.classes = 10;
  return choice;
}

NumericalState state_after(EngineTask& task, const Setting& of, int steps) {
  auto step = task.prepare(of);
  EXPECT_TRUE(step) << step.error().message;
  NumericalState state = NumericalState::unknown;
  for (int at = 0; at < steps; ++at) {
    const auto done = (*step)();
    EXPECT_TRUE(done);
    state = *done;
  }
  return state;
}

TEST(RandomData, is_normal_and_never_zero) {
  const Tensor tensor = random_tensor({DType::f32, Shape{100, 100}}, 7);
  double sum = 0;
  double squares = 0;
  for (const float x : tensor.as<float>()) {
    EXPECT_NE(x, 0);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.05);
}

TEST(TrainTask, trains_in_every_mode_and_is_dead_in_the_one_that_must_be) {
  const auto backend = *open_cpu();
  for (const Precision& row : precisions()) {
    const auto task = train_task(micro(), {backend.get(), {}});
    const NumericalState expected =
        row.name == "O3" ? NumericalState::dead : NumericalState::live;
    EXPECT_EQ(state_after(*task, setting(row.name, 4), 3), expected) << row.name;
  }
}

TEST(InferTask, is_live_in_every_mode) {
  const auto backend = *open_cpu();
  for (const Precision& row : precisions()) {
    const auto task = infer_task(micro(), {backend.get(), {}});
    EXPECT_EQ(state_after(*task, setting(row.name, 4), 2), NumericalState::live) << row.name;
  }
}

TEST(PlanRun, has_weights_in_every_mode_also_where_a_plan_reads_only_their_copies) {
  const auto backend = *open_cpu();
  std::optional<float> exact;
  for (const char* mode :
       {"fp64", "fp32", "amp-bf16", "amp-fp16", "O2", "bf16", "fp8", "fp8-delayed"}) {
    const auto graph =
        with_precision(vit(micro().model, 2, ModelMode::infer), *precision_named(mode), {});
    const auto run = PlanRun::open(*lower(*graph, {&backend->target(), 1}), *backend, 1);
    ASSERT_TRUE(run) << run.error().message;
    ASSERT_TRUE((*run)->run());
    const float logit = (*run)->result("logits").as<float>()[0];
    exact = exact ? exact : logit;
    EXPECT_NE(logit, 0) << mode;
    EXPECT_NEAR(logit, *exact, 0.1 * std::abs(*exact) + 0.01) << mode;
  }
}

TEST(InferTask, is_a_third_of_the_training_in_flops_and_holds_less) {
  const auto backend = *open_cpu();
  const auto train = train_task(micro(), {backend.get(), {}})->predict(setting("fp32", 8));
  const auto infer = infer_task(micro(), {backend.get(), {}})->predict(setting("fp32", 8));
  ASSERT_TRUE(train);
  ASSERT_TRUE(infer);
  EXPECT_GT(*train->flops, 2.5 * *infer->flops);
  EXPECT_LT(*train->flops, 3.0 * *infer->flops);
  EXPECT_LT(*infer->memory, *train->memory);
  EXPECT_EQ(train->step_time, std::nullopt) << "nobody measured a rate";
}

TEST(EngineTask, knows_which_modes_are_emulated_here) {
  const auto backend = *open_cpu();
  const auto task = infer_task(micro(), {backend.get(), {}});
  for (const char* name : {"fp32", "amp-bf16", "bf16", "fp64"}) {
    EXPECT_FALSE(task->predict(setting(name, 2))->emulated) << name;
  }
  for (const char* name : {"tf32", "amp-fp16", "fp16", "fp16-sr", "fp8", "fp8-delayed"}) {
    EXPECT_TRUE(task->predict(setting(name, 2))->emulated) << name;
  }
}

TEST(EngineTask, refuses_a_precision_that_there_is_none_of) {
  const auto backend = *open_cpu();
  const auto task = train_task(micro(), {backend.get(), {}});
  const auto predicted = task->predict(setting("fp12", 2));
  ASSERT_FALSE(predicted);
  EXPECT_NE(predicted.error().message.find("fp12"), std::string::npos);
}

TEST(ProductTask, counts_two_flops_for_a_multiplication) {
  const auto backend = *open_cpu();
  const auto task = product_task({12, 34, 56}, {backend.get(), {}});
  for (const Precision& row : precisions()) {
    const auto predicted = task->predict(setting(row.name, 1));
    ASSERT_TRUE(predicted) << row.name;
    EXPECT_EQ(*predicted->flops, 2.0 * 12 * 34 * 56);
    EXPECT_EQ(state_after(*task, setting(row.name, 1), 2), NumericalState::live) << row.name;
  }
}

// As GPUs have products of fp8: of sixteen columns.
TEST(ProductTask, says_which_of_its_products_the_device_refuses_and_why) {
  Target target = (*open_cpu())->target();
  target.support = [](const Graph& graph, int id) {
    const Node& node = graph.node(id);
    const bool is_refused = node.op == Op::matmul && node.attributes.has("math_a") &&
                            node.outputs[0].shape.last(0) % 16 != 0;
    return is_refused ? Support{Support::Kind::refused, "no sixteens"} : Support{};
  };
  const auto backend = open_null(target);
  const std::vector<ProductShape> shapes = {{32, 16, 48}, {32, 16, 1000}};
  const auto task = product_task(shapes, "a model", {backend.get(), {}});
  const auto why = [&](const ProductShape& shape, const char* precision) {
    Setting of;
    of.set(shape_knob().name, text(shape));
    of.set("precision", std::string(precision));
    return task->why_refused(of);
  };
  EXPECT_EQ(why(shapes[0], "fp8"), "");
  EXPECT_EQ(why(shapes[1], "fp8"), "no sixteens");
  EXPECT_EQ(why(shapes[1], "fp8-delayed"), "no sixteens");
  EXPECT_EQ(why(shapes[1], "bf16"), "");
}

TEST(ProductShape, is_three_extents) {
  const auto shape = product_shape("3152x192x768");
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->m, 3152);
  EXPECT_EQ(shape->k, 192);
  EXPECT_EQ(shape->n, 768);
}

TEST(ProductShape, refuses_what_is_none) {
  for (const char* wrong : {"", "1", "1x2", "1x2x", "1x2x3x4", "0x1x1", "-1x1x1", "1x1x1 ",
                            "axbxc", "1 x1x1", "65536x65536x1", "99999999999999999999x1x1"}) {
    const auto shape = product_shape(wrong);
    ASSERT_FALSE(shape) << wrong;
    EXPECT_NE(shape.error().message.find("needed MxKxN"), std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt

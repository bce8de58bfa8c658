#include "engine/plan/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/passes/made_up.h"
#include "engine/passes/pipeline.h"
#include "engine/plan/known_targets.h"
#include "engine/plan/summary_text.h"
#include "report/terminal.h"

namespace halfwatt {
namespace {

VitConfig base(std::int64_t classes = 1) {
  VitConfig config = *vit_named("vit_base_patch16_224");
  config.classes = classes;
  return config;
}

Compilation training(std::string_view mode, std::vector<Target> targets) {
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.optimizer = Optimizer();
  asked.targets = std::move(targets);
  return asked;
}

PlanSummary summary(const VitConfig& config, std::int64_t batch, const Compilation& asked) {
  const auto compiled = compile(vit(config, batch, ModelMode::train), asked);
  EXPECT_TRUE(compiled) << compiled.error().message;
  const auto step =
      lower_step(compiled->graph, compiled->update, asked.micro_batches, asked.targets);
  EXPECT_TRUE(step) << step.error().message;
  return summarize(*step, asked.targets);
}

// Section 1 of the facts on GPU performance; how fast a step is, in h200-measured.md: 45.2 ms
// compiled by PyTorch, 61.2 ms eager, whose peaks are 11.5 GiB.
TEST(Summary, tells_a_training_step_before_it_runs) {
  const PlanSummary all = summary(base(), 160, training("amp-bf16", {*target_named("h200")}));
  EXPECT_NEAR(all.flops / 1e12, 16.94, 0.005);
  ASSERT_TRUE(all.time);
  EXPECT_GT(*all.time, Seconds(0.030));
  EXPECT_LT(*all.time, Seconds(0.065));
  EXPECT_NEAR(all.peak().value() / (1 << 30), 11.5, 2.5);
}

TEST(Summary, divides_the_whole_among_layers) {
  Compilation asked = training("amp-fp16", {made_up("one")});
  asked.micro_batches = 4;
  const PlanSummary all = summary(base(1000), 2, asked);
  double flops = 0;
  double moved = 0;
  double busy = 0;
  double states = 0;
  for (const LayerSummary& layer : all.layers) {
    flops += layer.flops;
    moved += layer.moved.value();
    busy += layer.busy->value();
    states += layer.states.value();
  }
  EXPECT_NEAR(flops, all.flops, 1e-9 * flops);
  EXPECT_NEAR(moved, all.moved.value(), 1e-9 * moved);
  EXPECT_NEAR(busy, all.time->value(), 1e-9 * busy);
  const Footprint& bytes = all.devices[0].footprint;
  EXPECT_DOUBLE_EQ(states, static_cast<double>(bytes.parameters + bytes.moments +
                                               bytes.accumulators + bytes.others));
  EXPECT_EQ(all.layers.front().layer, "patch_embed");
  EXPECT_EQ(all.layers.back().layer, "update");
  EXPECT_EQ(all.layers[2].layer, "blocks.0");
}

TEST(Summary, shows_what_a_block_keeps_with_recompute_and_without) {
  Compilation asked = training("amp-bf16", {made_up("one")});
  const double a = 8.0 * 197 * 768 * 2;
  const auto kept = [&] {
    const PlanSummary all = summary(base(), 8, asked);
    for (const LayerSummary& layer : all.layers) {
      if (layer.layer == "blocks.5") {
        return layer.kept.value() / a;
      }
    }
    return 0.0;
  };
  // Beside whole activations: statistics of norms and attention.
  EXPECT_NEAR(kept(), 18, 0.2);
  asked.recompute = true;
  EXPECT_NEAR(kept(), 2, 0.01);  // its output, which the next block begins with
}

TEST(Summary, finds_products_whose_rows_are_not_whole_16_bytes) {
  const PlanSummary one = summary(base(1), 8, training("amp-bf16", {made_up("one")}));
  ASSERT_EQ(one.unaligned.size(), 3U);
  EXPECT_EQ(one.unaligned[0].layer, "head");
  EXPECT_EQ(one.unaligned[0].phase, Phase::forward);
  EXPECT_EQ(one.unaligned[0].extents, "8x768 . 1x768 transposed");
  EXPECT_DOUBLE_EQ(one.unaligned[0].padding, 7);
  ASSERT_TRUE(one.unaligned[0].gain);
  EXPECT_GE(*one.unaligned[0].gain, Seconds(0));
  EXPECT_TRUE(summary(base(1000), 8, training("amp-bf16", {made_up("one")})).unaligned.empty());
}

// Devices that each are good at one of the two precisions, close to each other.
TEST(Summary, shows_a_split_by_precision_win_on_devices_made_for_it) {
  Target wide = made_up("D1");
  Target narrow = made_up("D2");
  wide.flops = {{DType::f32, 100e12}, {DType::bf16, 10e12}};
  narrow.flops = {{DType::f32, 1e12}, {DType::bf16, 600e12}};
  wide.link = narrow.link = 2e12;
  wide.latency = narrow.latency = Seconds(1e-6);
  narrow.bytes_per_second = 1e12;
  const auto alone = [&](const Target& target) {
    return *summary(base(), 64, training("amp-bf16", {target})).time;
  };
  Compilation asked = training("amp-bf16", {wide, narrow});
  asked.place = *placement_rules("fp32=D1,16bit=D2");
  const PlanSummary split = summary(base(), 64, asked);
  EXPECT_LT(*split.time, alone(wide));
  EXPECT_LT(*split.time, alone(narrow));
  EXPECT_GT(split.between, Bytes(0));
}

TEST(Summary, shows_the_same_split_lose_on_equal_devices) {
  Compilation asked = training("amp-bf16", {made_up("D1"), made_up("D2")});
  asked.place = *placement_rules("fp32=D1,16bit=D2");
  const PlanSummary split = summary(base(), 64, asked);
  const PlanSummary alone = summary(base(), 64, training("amp-bf16", {made_up("D1")}));
  EXPECT_GT(*split.time, *alone.time);
  EXPECT_DOUBLE_EQ(split.flops, alone.flops);

  PlanTitle title{"vit", "train", "amp-bf16", 64};
  title.alone = {"D1", *alone.time};
  EXPECT_TRUE(loses(title, split));
  const std::string shown = render_terminal(plan_document(title, split), {});
  EXPECT_NE(shown.find("Do not split"), std::string::npos) << shown;
  const auto json = nlohmann::json::parse(plan_json(title, split));
  EXPECT_EQ(json["split"], false);
  EXPECT_EQ(json["bytes_between_devices"], split.between.value());
  EXPECT_EQ(json["alone"]["device"], "D1");
}

TEST(Summary, says_of_a_device_whether_it_only_emulates_a_format) {
  Target target = made_up("one");
  target.support = nullptr;
  Compilation asked = training("fp8-delayed", {target});
  EXPECT_EQ(summary(base(), 2, asked).devices[0].emulated, std::nullopt);
  asked.targets[0].support = [](const Graph&, int) { return Support{}; };
  EXPECT_EQ(summary(base(), 2, asked).devices[0].emulated, false);
  asked.targets[0].support = [](const Graph& graph, int id) {
    const bool rounds = graph.node(id).attributes.has("math_a");
    return Support{rounds ? Support::Kind::emulated : Support::Kind::native, {}};
  };
  const PlanSummary all = summary(base(), 2, asked);
  EXPECT_EQ(all.devices[0].emulated, true);
  const PlanTitle title{"vit", "train", "fp8-delayed", 2, 1, false};
  EXPECT_NE(render_terminal(plan_document(title, all), {}).find("emulated: one"),
            std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(plan_json(title, all))["devices"][0]["emulated"]);
}

TEST(Summary, is_unknown_where_rates_are_and_never_0) {
  const PlanSummary all =
      summary(*vit_named("vit_micro_patch4_16"), 2, training("fp32", {*target_named("cpu")}));
  EXPECT_FALSE(all.time);
  const PlanTitle title{"vit_micro_patch4_16", "train", "fp32", 2};
  const auto json = nlohmann::json::parse(plan_json(title, all));
  EXPECT_TRUE(json["predicted_ms"].is_null());
  EXPECT_TRUE(json["layers"][0]["busy_ms"].is_null());
  EXPECT_TRUE(json["devices"][0]["memory_bytes"].is_null());
  const std::string shown = render_terminal(plan_document(title, all), {});
  EXPECT_NE(shown.find("predicted unknown"), std::string::npos) << shown;
}

}  // namespace
}  // namespace halfwatt

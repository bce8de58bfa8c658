// What is dropped follows from the key and the sample, not from how samples are batched.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/product_library.h"
#include "engine/exec/micro_training.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

/// `op` of ones, 32 samples of `width` elements in all, `batch` at a time: the masks.
std::vector<double> masks(Op op,
                          double rate,
                          std::int64_t batch,
                          const std::string& path = "blocks.0.drop",
                          std::int64_t attempt = 5,
                          DType dtype = DType::f32) {
  constexpr std::int64_t kWidth = 67;
  Graph graph;
  Builder build(graph);
  const Value x = build.input("x", {dtype, Shape{batch, kWidth}});
  const Value random = build.input("random", {DType::i64, Shape{3}});
  graph.set_result("y", build.add(op, {x, random}, {{"rate", rate}, {"path", path}}));
  CpuRun run(graph);
  run.bind("x", {1});
  std::vector<double> all;
  for (std::int64_t first = 0; first < 32; first += batch) {
    run.bind("random", {3, static_cast<double>(attempt), static_cast<double>(first)});
    run.run();
    const std::vector<double> some = run.numbers("y");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(KeyedDrop, has_the_same_masks_however_samples_are_batched) {
  for (const Op op : {Op::dropout, Op::drop_path}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const auto whole = masks(op, 0.3, 32, "a", 5, dtype);
      EXPECT_EQ(whole, masks(op, 0.3, 8, "a", 5, dtype));
      EXPECT_EQ(whole, masks(op, 0.3, 1, "a", 5, dtype));
    }
  }
}

TEST(KeyedDrop, has_other_masks_for_another_layer_and_for_another_attempt) {
  const auto one = masks(Op::dropout, 0.5, 32, "a", 5);
  EXPECT_EQ(one, masks(Op::dropout, 0.5, 32, "a", 5));
  EXPECT_NE(one, masks(Op::dropout, 0.5, 32, "b", 5));
  EXPECT_NE(one, masks(Op::dropout, 0.5, 32, "a", 6));
}

TEST(KeyedDrop, keeps_the_share_it_says_and_scales_what_it_keeps) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const auto values = masks(Op::dropout, rate, 32);
    const auto kept = static_cast<float>(1 / (1 - rate));
    double count = 0;
    for (const double each : values) {
      EXPECT_TRUE(each == 0 || each == static_cast<double>(kept)) << each;
      count += each != 0 ? 1 : 0;
    }
    const auto all = static_cast<double>(values.size());
    const double deviation = std::sqrt(all * rate * (1 - rate));
    EXPECT_NEAR(count, all * (1 - rate), 4 * deviation);
  }
}

TEST(KeyedDrop, drops_a_sample_as_a_whole_on_a_path) {
  const auto values = masks(Op::drop_path, 0.5, 32);
  double kept = 0;
  for (std::size_t sample = 0; sample < 32; ++sample) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(sample * 67);
    EXPECT_EQ(std::count(begin, begin + 67, *begin), 67);
    EXPECT_TRUE(*begin == 0 || *begin == 2);
    kept += *begin / 2;
  }
  EXPECT_NEAR(kept, 16, 4 * std::sqrt(8.0));
}

TEST(KeyedDrop, has_rates_that_rise_linearly_over_the_blocks) {
  VitConfig config = *vit_named("vit_tiny_patch16_224");
  config.drop_path = 0.1;
  std::vector<double> rates;
  const Graph graph = vit(config, 1, ModelMode::train);
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::drop_path) {
      rates.push_back(node.attributes.number("rate"));
    }
  }
  // Two in each block but the first, whose rate is 0: numpy's linspace(0, 0.1, 12).
  ASSERT_EQ(rates.size(), 22U);
  for (std::size_t at = 0; at < rates.size(); ++at) {
    const std::size_t block = at / 2 + 1;
    EXPECT_NEAR(rates[at], 0.1 * static_cast<double>(block) / 11, 1e-15);
  }
}

MicroTraining dropping(std::string_view mode, std::int64_t batch, int parts) {
  MicroTraining training;
  training.model.drop_path = 0.3;
  training.model.dropout = 0.2;
  training.mode = mode;
  training.batch = batch;
  training.micro_batches = parts;
  training.optimizer.eps = 1e-4;
  return training;
}

double furthest(const std::vector<double>& one, const std::vector<double>& other) {
  double most = 0;
  double off = 0;
  EXPECT_EQ(one.size(), other.size());
  for (std::size_t at = 0; at < one.size(); ++at) {
    most = std::max(most, std::abs(other[at]));
    off = std::max(off, std::abs(one[at] - other[at]));
  }
  return off / most;
}

// Sums over 32 samples are taken in another order: so many roundings, of sums whose parts may
// be ten times as large.
double batching_error(DType dtype) { return 320 * half_ulp(dtype); }

TEST(MicroBatches, four_of_eight_images_are_a_step_of_thirty_two) {
  for (const auto& [mode, dtype] :
       {std::pair("fp64", DType::f64), std::pair("fp32", DType::f32)}) {
    SCOPED_TRACE(mode);
    MicroRun whole(dropping(mode, 32, 1));
    MicroRun parts(dropping(mode, 8, 4));
    const std::vector<double> losses = whole.step(1);
    // Own kernels give an image the same bits whatever is beside it.
    const bool is_own =
        dtype == DType::f64 || std::string_view(cpu::product_library_name()) == "none";
    if (is_own) {
      EXPECT_EQ(losses, parts.step(1));
    } else {
      EXPECT_LE(furthest(losses, parts.step(1)), batching_error(dtype));
    }
    EXPECT_NEAR(whole.mean_loss(), parts.mean_loss(),
                batching_error(dtype) * whole.mean_loss());
    for (const StateSpec& state : vit_parameters(MicroTraining::micro())) {
      // What the optimizer makes of a rounding error is at most that of its rate.
      EXPECT_LE(furthest(parts.run().state(state.name), whole.run().state(state.name)),
                batching_error(dtype))
          << state.name;
    }
  }
}

TEST(MicroBatches, a_step_is_the_same_bits_when_run_again_with_the_same_key) {
  for (const char* mode :
       {"fp64", "fp32", "amp-bf16", "amp-fp16", "bf16", "bf16-sr", "fp8", "fp8-delayed"}) {
    MicroRun one(dropping(mode, 8, 1));
    MicroRun other(dropping(mode, 8, 1));
    for (int step = 1; step <= 3; ++step) {
      EXPECT_EQ(one.step(step), other.step(step)) << mode;
    }
    for (const std::string& name : one.run().states().names()) {
      EXPECT_TRUE(same_bits(one.run().states().save(name), other.run().states().save(name)))
          << mode << " " << name;
    }
  }
}

TEST(Threads, change_no_bit_but_in_what_a_product_library_sums) {
  const bool has_library = std::string_view(cpu::product_library_name()) != "none";
  for (const auto& [mode, dtype] :
       {std::pair("fp64", DType::f64), std::pair("fp32", DType::f32)}) {
    MicroTraining training = dropping(mode, 8, 1);
    training.threads = 1;
    MicroRun one(training);
    const std::vector<double> losses = one.step(1);
    for (const int threads : {2, 3}) {
      training.threads = threads;
      MicroRun more(training);
      if (has_library && dtype != DType::f64) {
        EXPECT_LE(furthest(more.step(1), losses), batching_error(dtype)) << threads;
        continue;
      }
      EXPECT_EQ(more.step(1), losses) << mode << " " << threads;
      for (const std::string& name : one.run().states().names()) {
        EXPECT_TRUE(same_bits(one.run().states().save(name), more.run().states().save(name)))
            << mode << " " << threads << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace halfwatt

// The whole chain (model, passes, plan, kernels, session) against PyTorch and timm in fp64.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/exec/session.h"
#include "engine/formats/safetensors.h"
#include "engine/models/vit.h"
#include "engine/ops/verify.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/fuse.h"
#include "engine/passes/update.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

/// max |a - b| / max |b|.
double error(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  double off = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at) {
    largest = std::max(largest, std::abs(b[at]));
    off = std::max(off, std::abs(a[at] - b[at]));
    if (!std::isfinite(a[at])) {
      return INFINITY;
    }
  }
  return off / largest;
}

struct Case {
  std::string file;
  VitConfig config;
};

Case token_case() {
  Case test{"tests/golden/engine/micro_vit_token.safetensors", {}};
  test.config.image = 16;
  test.config.patch = 4;
  test.config.width = 32;
  test.config.depth = 2;
  test.config.heads = 2;
  test.config.hidden = 64;
  test.config.classes = 10;
  return test;
}

Case mean_case() {
  Case test{"tests/golden/engine/micro_vit_avg.safetensors", {}};
  test.config.image = 12;
  test.config.patch = 4;
  test.config.width = 24;
  test.config.depth = 1;
  test.config.heads = 3;
  test.config.hidden = 96;
  test.config.classes = 1;
  test.config.pool = VitConfig::Pool::mean;
  return test;
}

constexpr std::int64_t kBatch = 8;

class Golden {
 public:
  explicit Golden(const Case& test) : file_(*SafetensorsFile::open(test.file)) {}
  Tensor tensor(const std::string& name) const {
    const StoredTensor* stored = file_.find(name);
    EXPECT_NE(stored, nullptr) << name;
    return *file_.read(*stored);
  }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }

 private:
  SafetensorsFile file_;
};

/// A model in training as a user would run it, on the golden's batch.
class Training {
 public:
  Training(const Case& test,
           std::string_view mode,
           const Optimizer& optimizer,
           int micro_batches = 1,
           double smoothing = 0)
      : golden_(test), config_(test.config), micro_batches_(micro_batches) {
    auto backend = open_cpu();
    EXPECT_TRUE(backend) << backend.error().message;
    backend_ = std::move(*backend);
    const Precision precision = *precision_named(mode);
    const Graph model = vit(config_, kBatch / micro_batches, ModelMode::train, smoothing);
    const Graph forward = *with_precision(model, precision, {});
    const Graph both = with_gradients(forward, precision, micro_batches);
    std::vector<Plan> plans;
    if (micro_batches == 1) {
      plans.push_back(lowered(with_update(both, precision, optimizer)));
    } else {
      const Graph micro = with_accumulation(both, precision);
      plans.push_back(lowered(micro));
      plans.push_back(lowered(update_of(micro, precision, optimizer)));
    }
    auto session = Session::open(std::move(plans), {backend_.get()}, states_);
    EXPECT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
    for (const StateSpec& state : vit_parameters(config_)) {
      const auto loaded =
          states_.load(state.name, golden_.tensor("weight/" + state.name).view());
      EXPECT_TRUE(loaded) << loaded.error().message;
    }
  }

  void step() {
    ++attempt_;
    for (int part = 0; part < micro_batches_; ++part) {
      bind(part);
      EXPECT_TRUE(session_->run(0));
    }
    if (micro_batches_ > 1) {
      EXPECT_TRUE(session_->run(1));
    }
  }

  const Golden& golden() const { return golden_; }
  const VitConfig& config() const { return config_; }
  States& states() { return states_; }
  std::vector<double> result(const std::string& name) const {
    return doubles(session_->result(0, name));
  }
  std::vector<double> last_result(const std::string& name) const {
    return doubles(session_->result(micro_batches_ > 1 ? 1 : 0, name));
  }

 private:
  Plan lowered(const Graph& graph) {
    const Graph fused = with_fused(graph);
    const auto legal = verify(fused);
    EXPECT_TRUE(legal) << legal.error().message;
    auto plan = lower(fused, {&backend_->target(), 1});
    EXPECT_TRUE(plan) << plan.error().message;
    return std::move(*plan);
  }

  // A part of the golden's batch, in the dtype of the plan's input.
  void bind_rows(std::string_view input, const Tensor& all, int part) {
    const std::int64_t rows = kBatch / micro_batches_;
    Shape shape = all.shape().with(0, rows);
    for (const PlanInput& each : session_->plan(0).inputs) {
      if (each.name == input) {
        Tensor piece(TensorType{each.type.dtype, shape});
        const std::size_t bytes = all.view().type.bytes() / static_cast<std::size_t>(kBatch) *
                                  static_cast<std::size_t>(rows);
        convert(TensorView{{all.dtype(), shape},
                           all.view().data + static_cast<std::size_t>(part) * bytes},
                piece.view());
        session_->bind(0, input, piece.view());
      }
    }
  }

  void bind(int part) {
    bind_rows("images", golden_.tensor("input/images"), part);
    bind_rows("labels", golden_.tensor("input/labels"), part);
    const std::vector<std::int64_t> valid = {kBatch / micro_batches_};
    session_->bind(0, "valid", Tensor::of<std::int64_t>(DType::i64, Shape(), valid).view());
    if (session_->has_input(0, kRandom)) {
      const std::vector<std::int64_t> key = {1, attempt_, 0};
      session_->bind(0, kRandom, Tensor::of<std::int64_t>(DType::i64, Shape{3}, key).view());
    }
  }

  Golden golden_;
  VitConfig config_;
  int micro_batches_;
  std::int64_t attempt_ = 0;
  std::unique_ptr<Backend> backend_;
  States states_;
  std::unique_ptr<Session> session_;
};

Optimizer decay_all(Optimizer::Kind kind, double rate, double eps) {
  Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.rate = rate;
  optimizer.eps = eps;
  optimizer.decay = 0.05;
  optimizer.decay_all = true;
  return optimizer;
}

class MicroVit : public testing::TestWithParam<int> {
 protected:
  static Case test() { return GetParam() == 0 ? token_case() : mean_case(); }
};

// The tolerances of this file: 1e-5 of logits, 1e-4 of gradients, relative to the largest of
// each tensor; fp64 is held to what is left of a thousandth of that.
double tolerance(std::string_view mode) { return mode == "fp64" ? 1e-3 : 1; }

void expect_forward_and_gradients(const Case& test,
                                  std::string_view mode,
                                  double smoothing,
                                  const std::string& loss,
                                  const std::string& gradient) {
  Training training(test, mode, decay_all(Optimizer::Kind::sgd, 0, 1e-8), 1, smoothing);
  training.step();
  const double share = tolerance(mode);
  const Golden& golden = training.golden();
  EXPECT_LT(error(training.result("logits"), doubles(golden.tensor("output/logits"))),
            1e-5 * share);
  EXPECT_LT(error(training.result("loss"), doubles(golden.tensor(loss))), 1e-5 * share);
  for (const StateSpec& state : vit_parameters(training.config())) {
    auto ours = training.result("gradient:" + state.name);
    auto theirs = doubles(golden.tensor(gradient + "/" + state.name));
    if (state.name.find("qkv.bias") != std::string::npos) {
      // The key third is zero in exact arithmetic.
      const std::size_t third = ours.size() / 3;
      const double largest = *std::max_element(theirs.begin(), theirs.end());
      for (std::size_t at = third; at < 2 * third; ++at) {
        EXPECT_LT(std::abs(ours[at]), 1e-7 * std::max(largest, 1.0)) << state.name;
        ours[at] = theirs[at] = 0;
      }
    }
    EXPECT_LT(error(ours, theirs), 1e-4 * share) << mode << " " << state.name;
  }
}

TEST_P(MicroVit, has_the_logits_loss_and_gradients_of_pytorch) {
  for (const auto mode : {"fp64", "fp32"}) {
    expect_forward_and_gradients(test(), mode, 0, "output/loss", "gradient");
  }
}

TEST_P(MicroVit, has_the_gradients_of_pytorch_with_smoothed_labels) {
  if (GetParam() == 0) {
    for (const auto mode : {"fp64", "fp32"}) {
      expect_forward_and_gradients(test(), mode, 0.1, "output/loss_smoothed",
                                   "gradient_smoothed");
    }
  }
}

void expect_parameters(Training& training, const std::string& run, double share) {
  for (int step = 0; step < 10; ++step) {
    training.step();
  }
  for (const StateSpec& state : vit_parameters(training.config())) {
    auto ours = doubles(training.states().save(state.name));
    const auto theirs = doubles(training.golden().tensor("after/" + run + "/" + state.name));
    EXPECT_LT(error(ours, theirs), 1e-5 * share) << run << " " << state.name;
  }
}

TEST_P(MicroVit, has_the_parameters_of_pytorch_after_ten_steps) {
  const auto sgd = decay_all(Optimizer::Kind::sgd, 0.05, 1e-8);
  const auto adamw = decay_all(Optimizer::Kind::adamw, 1e-3, 1e-4);
  for (const auto mode : {"fp64", "fp32"}) {
    Training one(test(), mode, sgd);
    expect_parameters(one, "sgd", tolerance(mode));
    Training two(test(), mode, adamw);
    expect_parameters(two, "adamw_eps4", tolerance(mode));
  }
}

// With eps 1e-8 the update of a gradient near zero is its sign, and fp32 shows its rounding: a
// run of ours may be off by twice what PyTorch's own fp32 is off in the worst of its orders of
// the batch, tensor by tensor, and by an ulp where that was luck.
TEST_P(MicroVit, is_as_near_to_fp64_with_a_small_eps_as_pytorch_is_in_fp32) {
  Training training(test(), "fp32", decay_all(Optimizer::Kind::adamw, 1e-3, 1e-8));
  for (int step = 0; step < 10; ++step) {
    training.step();
  }
  const Golden& golden = training.golden();
  constexpr double kUlp = 1.2e-7;
  const auto allowed = [&](const std::string& key) {
    return std::max(2 * doubles(golden.tensor("fp32_error_worst/adamw_eps8/" + key))[0], kUlp);
  };
  double ours_worst = 0;
  double pytorchs_worst = 0;  // of one run, all parameters together
  for (const StateSpec& state : vit_parameters(training.config())) {
    const auto ours = doubles(training.states().save(state.name));
    const auto theirs = doubles(golden.tensor("after/adamw_eps8/" + state.name));
    const double own = doubles(golden.tensor("fp32_error/adamw_eps8/" + state.name))[0];
    EXPECT_LT(error(ours, theirs), allowed(state.name)) << state.name;
    ours_worst = std::max(ours_worst, error(ours, theirs));
    pytorchs_worst = std::max(pytorchs_worst, own);
  }
  EXPECT_LE(ours_worst, 2 * pytorchs_worst);
}

TEST_P(MicroVit, accumulates_micro_batches_to_the_same_step) {
  const auto adamw = decay_all(Optimizer::Kind::adamw, 1e-3, 1e-4);
  for (const int parts : {2, 4}) {
    Training training(test(), "fp64", adamw, parts);
    expect_parameters(training, "adamw_eps4", tolerance("fp64"));
  }
}

TEST(ClippedMicroVit, clips_gradients_as_pytorch_does) {
  auto adamw = decay_all(Optimizer::Kind::adamw, 1e-3, 1e-4);
  adamw.max_norm = 3;
  Training training(token_case(), "fp64", adamw);
  expect_parameters(training, "adamw_clipped", tolerance("fp64"));
}

TEST_P(MicroVit, is_live_in_every_mode_but_the_one_that_cannot_be) {
  for (const Precision& row : precisions()) {
    Training training(test(), row.name, decay_all(Optimizer::Kind::adamw, 1e-3, 1e-8));
    double first = 0;
    for (int step = 0; step < 10; ++step) {
      training.step();
      first = step == 0 ? training.result("loss")[0] : first;
    }
    const double last = training.result("loss")[0];
    if (row.name == "O3") {
      EXPECT_FALSE(std::isfinite(last)) << row.name;
    } else {
      EXPECT_LT(last, first) << row.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, MicroVit, testing::Values(0, 1));

}  // namespace
}  // namespace halfwatt

// The loss scale against torch.amp.GradScaler, and what a step that is skipped leaves behind.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "engine/exec/micro_training.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

/// A trace of tests/golden/engine/scaler.json, which has one on each line.
struct Trace {
  std::string name;
  std::string steps;
  double initial = 0;
  std::int64_t interval = 0;
  std::vector<double> scale;
  std::vector<double> age;
  std::string applied;
};

std::string after(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\": ");
  EXPECT_NE(at, std::string::npos) << key;
  return line.substr(at + key.size() + 4);
}

std::string word(const std::string& line, const std::string& key) {
  const std::string rest = after(line, key).substr(1);
  return rest.substr(0, rest.find('"'));
}

std::vector<double> list(const std::string& line, const std::string& key) {
  std::vector<double> all;
  const std::string rest = after(line, key);
  for (const char* at = rest.c_str(); *at != ']';) {
    char* end = nullptr;
    all.push_back(std::strtod(at + 1, &end));
    at = end;
  }
  return all;
}

std::vector<Trace> traces_of_torch() {
  std::ifstream file("tests/golden/engine/scaler.json");
  EXPECT_TRUE(file);
  std::vector<Trace> all;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"scaler\": \"torch\"") != std::string::npos) {
      all.push_back({word(line, "name"), word(line, "steps"),
                     std::stod(after(line, "initial_scale")),
                     std::stoll(after(line, "interval")), list(line, "scale"),
                     list(line, "tracker"), word(line, "applied")});
    }
  }
  return all;
}

/// One parameter whose gradient is an accumulator, and so can be set: the update alone.
class OneUpdate {
 public:
  explicit OneUpdate(const Optimizer& optimizer,
                     const std::vector<std::string>& parameters = {"w"})
      : run_(graph(optimizer, parameters)) {}

  void step(const std::string& parameter, double gradient) {
    run_.load(accumulator_name(parameter), tensor_of({DType::f32, Shape{2}}, {1, gradient}));
    run_.run();
  }
  CpuRun& run() { return run_; }

 private:
  static Graph graph(const Optimizer& optimizer, const std::vector<std::string>& parameters) {
    Graph micro;
    Builder build(micro);
    for (const std::string& name : parameters) {
      const TensorType type{DType::f32, Shape{2}};
      const StateSpec state{name, StateRole::parameter, type, {}, 0};
      micro.set_result("gradient:" + name, build.read(state));
    }
    return update_of(micro, *precision_named("amp-fp16"), optimizer);
  }

  CpuRun run_;
};

TEST(LossScale, moves_as_that_of_torch) {
  const auto traces = traces_of_torch();
  EXPECT_EQ(traces.size(), 3U);
  for (const Trace& trace : traces) {
    SCOPED_TRACE(trace.name);
    Optimizer optimizer;
    optimizer.kind = Optimizer::Kind::sgd;
    optimizer.rate = 1;
    optimizer.interval = trace.interval;
    optimizer.floor_scale = 0;  // torch has none
    OneUpdate update(optimizer);
    update.run().load(std::string(kLossScale),
                      tensor_of({DType::f32, Shape()}, {trace.initial}));
    double applied = 0;
    for (std::size_t at = 0; at < trace.steps.size(); ++at) {
      update.step("w", trace.steps[at] == 'I' ? INFINITY : 1);
      applied += trace.applied[at] == 'y' ? 1 : 0;
      EXPECT_EQ(update.run().number("scale"), trace.scale[at]) << at;
      EXPECT_EQ(update.run().state(std::string(kLossScale))[0], trace.scale[at]) << at;
      EXPECT_EQ(update.run().state(std::string(kScaleAge))[0], trace.age[at]) << at;
      EXPECT_EQ(update.run().state(std::string(kApplied))[0], applied) << at;
    }
  }
}

TEST(LossScale, is_taken_out_of_gradients_as_torch_takes_it_out) {
  std::ifstream file("tests/golden/engine/scaler.json");
  int seen = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"inverse\": ") == std::string::npos) {
      continue;
    }
    ++seen;
    Optimizer optimizer;
    optimizer.kind = Optimizer::Kind::sgd;
    optimizer.rate = 1;
    OneUpdate update(optimizer);
    update.run().load(std::string(kLossScale),
                      tensor_of({DType::f32, Shape()}, {std::stod(after(line, "scale"))}));
    update.step("w", 1);
    EXPECT_EQ(-update.run().state("w")[0], std::stod(after(line, "inverse")));
  }
  EXPECT_EQ(seen, 2);
}

TEST(LossScale, stays_at_its_floor) {
  Optimizer optimizer;
  optimizer.floor_scale = 16384;
  OneUpdate update(optimizer);
  for (int step = 0; step < 5; ++step) {
    update.step("w", NAN);
  }
  EXPECT_EQ(update.run().number("scale"), 16384);
}

TEST(LossScale, names_the_first_gradient_that_is_not_finite) {
  OneUpdate update({}, {"a", "b", "c", "d"});
  const auto bad = [&] { return update.run().number("first_bad"); };
  update.step("c", 1);
  EXPECT_EQ(bad(), -1);
  EXPECT_EQ(update.run().number("skipped"), 0);
  update.step("c", NAN);
  EXPECT_EQ(bad(), 2);
  EXPECT_EQ(update.run().number("skipped"), 1);
  update.run().load(accumulator_name("b"),
                    tensor_of({DType::f32, Shape{2}}, {-double{INFINITY}}));
  update.step("d", INFINITY);
  EXPECT_EQ(bad(), 1);
}

TEST(LossScale, latches_an_overflow_before_gradients_are_clipped) {
  for (const float gradient : {INFINITY, -INFINITY, NAN}) {
    Optimizer optimizer;
    optimizer.max_norm = 1;
    OneUpdate update(optimizer);
    update.step("w", gradient);
    EXPECT_EQ(update.run().number("skipped"), 1);
    for (const char* state : {"w", "w.exp_avg", "w.exp_avg_sq"}) {
      EXPECT_EQ(update.run().state(state), (std::vector<double>{0, 0})) << state;
    }
  }
}

MicroTraining with_everything(std::string_view mode, int micro_batches) {
  MicroTraining training;
  training.mode = mode;
  training.change = [](Precision& row) { row.scale = Precision::Scale::dynamic; };
  training.micro_batches = micro_batches;
  training.optimizer.average = 0.9;
  training.optimizer.max_norm = 1;
  training.optimizer.schedule = Optimizer::Schedule::cosine;
  training.optimizer.warmup = 3;
  training.optimizer.total = 20;
  return training;
}

/// Every state but those of the scale.
std::map<std::string, Tensor> states_of(MicroRun& micro) {
  std::map<std::string, Tensor> all;
  for (const std::string& name : micro.run().states().names()) {
    if (micro.run().states().spec(name).role != StateRole::scaler) {
      all.emplace(name, micro.run().states().save(name));
    }
  }
  return all;
}

void expect_same(const std::map<std::string, Tensor>& one,
                 const std::map<std::string, Tensor>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, value] : one) {
    EXPECT_TRUE(same_bits(value, other.at(name))) << name;
  }
}

class SkippedStep : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(SkippedStep, leaves_no_trace_but_in_the_scale) {
  const auto [mode, parts] = GetParam();
  MicroRun micro(with_everything(mode, parts));
  micro.set_scale(1024);
  micro.step(1);
  micro.step(2);
  ASSERT_FALSE(micro.skipped());
  const auto before = states_of(micro);
  micro.step(3, parts / 2);
  EXPECT_TRUE(micro.skipped());
  EXPECT_EQ(micro.run().state(std::string(kLossScale))[0], 512);
  expect_same(before, states_of(micro));
}

TEST_P(SkippedStep, leaves_none_in_the_steps_after_it) {
  const auto [mode, parts] = GetParam();
  MicroRun skipping(with_everything(mode, parts));
  MicroRun straight(with_everything(mode, parts));
  skipping.set_scale(1024);
  straight.set_scale(1024);
  skipping.step(1);
  skipping.step(2, parts / 2);
  ASSERT_TRUE(skipping.skipped());
  straight.step(1);
  // The scale is another one, as it should be, and would show in the last bits.
  for (MicroRun* each : {&skipping, &straight}) {
    each->set_scale(1024);
    each->step(3);
    each->step(4);
    ASSERT_FALSE(each->skipped());
  }
  expect_same(states_of(skipping), states_of(straight));
}

INSTANTIATE_TEST_SUITE_P(
    ModesAndMicroBatches,
    SkippedStep,
    testing::Combine(testing::Values("amp-fp16", "fp16", "fp16-sr", "O2", "fp8-delayed"),
                     testing::Values(1, 4)));

}  // namespace
}  // namespace halfwatt

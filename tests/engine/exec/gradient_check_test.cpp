// Every gradient rule, through the passes, the plan and the CPU, against central differences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/rng.h"
#include "engine/exec/cpu_run.h"
#include "engine/exec/op_examples.h"
#include "engine/models/vit.h"
#include "engine/passes/autodiff.h"

namespace halfwatt {
namespace {

// The error of a central difference is of the order of step^2 and of 2^-53 / step, here 1e-10
// and 1e-11 of numbers about 1; derivatives of the third order are some times as large.
constexpr double kStep = 1e-5;
constexpr double kError = 1e-8;

Graph with_gradients_in_double(const Graph& graph) {
  return with_gradients(graph, *precision_named("fp64"), 1);
}

/// Changes parameters of a run, and puts them back.
class Nudge {
 public:
  Nudge(CpuRun& run, const std::string& parameter)
      : run_(&run), parameter_(parameter), type_(run.states().spec(parameter).type) {
    values_ = run.state(parameter);
  }
  std::size_t size() const { return values_.size(); }
  double loss_at(std::size_t element, double by) {
    std::vector<double> moved = values_;
    moved[element] += by;
    run_->load(parameter_, tensor_of(type_, moved));
    run_->run();
    const double loss = run_->number("loss");
    run_->load(parameter_, tensor_of(type_, values_));
    return loss;
  }
  double slope(std::size_t element) {
    return (loss_at(element, kStep) - loss_at(element, -kStep)) / (2 * kStep);
  }

 private:
  CpuRun* run_;
  std::string parameter_;
  TensorType type_;
  std::vector<double> values_;
};

void expect_gradients(CpuRun& run, const std::vector<std::string>& parameters) {
  run.run();
  const double loss = run.number("loss");
  std::vector<std::vector<double>> gradients;
  gradients.reserve(parameters.size());
  for (const std::string& name : parameters) {
    gradients.push_back(run.numbers("gradient:" + name));
  }
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    Nudge nudge(run, parameters[at]);
    ASSERT_EQ(nudge.size(), gradients[at].size());
    for (std::size_t element = 0; element < nudge.size(); ++element) {
      const double slope = nudge.slope(element);
      EXPECT_NEAR(gradients[at][element], slope,
                  kError * (1 + std::abs(slope) + std::abs(loss)))
          << parameters[at] << " " << element;
    }
  }
}

std::string input_name(std::size_t at) { return "x" + std::to_string(at); }

/// A graph whose loss is the example's output times fixed weights, and the names of what it is
/// to be differentiated by.
Graph loss_graph(const OpExample& example, std::vector<std::string>& parameters) {
  Graph graph;
  Builder build(graph);
  std::vector<Value> inputs;
  for (std::size_t at = 0; at < example.inputs.size(); ++at) {
    const ExampleInput& input = example.inputs[at];
    const TensorType type = example_type(input, DType::f64);
    if (input.kind == ExampleInput::Kind::number) {
      parameters.push_back(input_name(at));
      inputs.push_back(build.read({input_name(at), StateRole::parameter, type, {}, 0}));
    } else {
      inputs.push_back(build.input(input_name(at), type));
    }
  }
  const Value y = build.add(example.op, inputs, example.attributes);
  const std::int64_t count = build.type(y).shape.elements();
  const Value row = build.reshape(y, Shape{1, count});
  const Value weights = build.input("weights", {DType::f64, Shape{count, 1}});
  graph.set_result("loss", build.reshape(build.add(Op::matmul, {row, weights}), Shape()));
  return graph;
}

bool has_gradient_by_something(const OpExample& example) {
  return definition(example.op).gradient != nullptr &&
         std::any_of(
             example.inputs.begin(), example.inputs.end(),
             [](const ExampleInput& each) { return each.kind == ExampleInput::Kind::number; });
}

TEST(GradientCheck, has_an_example_of_every_op_that_has_a_gradient) {
  std::set<Op> seen;
  for (const OpExample& example : op_examples()) {
    if (has_gradient_by_something(example)) {
      seen.insert(example.op);
    }
  }
  for (int at = 0; at < kOps; ++at) {
    const OpDef& row = definition(static_cast<Op>(at));
    EXPECT_EQ(row.gradient != nullptr, seen.count(row.op) == 1) << row.name;
  }
}

TEST(GradientCheck, every_op_has_the_slope_of_its_output) {
  std::uint64_t seed = 1;
  for (const OpExample& example : op_examples()) {
    if (!has_gradient_by_something(example)) {
      continue;
    }
    SCOPED_TRACE(text(example));
    std::vector<std::string> parameters;
    const Graph graph = loss_graph(example, parameters);
    CpuRun run(with_gradients_in_double(graph), 1);  // too little work for two
    for (std::size_t at = 0; at < example.inputs.size(); ++at) {
      const ExampleInput& input = example.inputs[at];
      const Tensor value =
          tensor_of(example_type(input, DType::f64), example_values(input, ++seed));
      if (input.kind == ExampleInput::Kind::number) {
        run.load(input_name(at), value);
      } else {
        run.session().bind(0, input_name(at), value.view());
      }
    }
    Rng rng(++seed);
    std::vector<double> normal(4096);  // more than any example has outputs
    std::generate(normal.begin(), normal.end(), [&] { return rng.normal(); });
    run.bind("weights", normal);
    expect_gradients(run, parameters);
  }
}

VitConfig smallest(VitConfig::Pool pool, std::int64_t classes) {
  VitConfig config;
  config.image = 6;
  config.patch = 3;
  config.channels = 1;
  config.width = 6;
  config.depth = 2;
  config.heads = 2;
  config.hidden = 7;
  config.classes = classes;
  config.pool = pool;
  config.drop_path = 0.5;
  config.dropout = 0.3;
  return config;
}

void expect_vit_gradients(const VitConfig& config, double smoothing) {
  constexpr std::int64_t kBatch = 4;
  const Graph model = vit(config, kBatch, ModelMode::train, smoothing);
  const Graph forward = *with_precision(model, *precision_named("fp64"), {});
  CpuRun run(with_gradients_in_double(forward), 1);  // too little work for two
  Rng rng(11);
  std::vector<std::string> parameters;
  for (const StateSpec& state : vit_parameters(config)) {
    std::vector<double> values;
    for (std::int64_t at = 0; at < state.type.shape.elements(); ++at) {
      values.push_back(0.5 * rng.normal() + (state.name.find("norm") != std::string::npos));
    }
    run.load(state.name, tensor_of({DType::f64, state.type.shape}, values));
    parameters.push_back(state.name);
  }
  std::vector<double> pixels(static_cast<std::size_t>(kBatch * config.image * config.image));
  std::generate(pixels.begin(), pixels.end(), [&] { return rng.normal(); });
  // Through f32: that is what images come in.
  run.bind("images", pixels);
  run.bind("labels", config.classes == 1 ? std::vector<double>{0, 1, 1, 0}
                                         : std::vector<double>{0, 2, 1, 1});
  run.bind("valid", {3});
  run.bind("random", {5, 2, 0});
  expect_gradients(run, parameters);
}

TEST(GradientCheck, a_vit_with_droppath_and_dropout_has_the_slopes_of_its_loss) {
  expect_vit_gradients(smallest(VitConfig::Pool::token, 3), 0.1);
  expect_vit_gradients(smallest(VitConfig::Pool::mean, 1), 0);
}

}  // namespace
}  // namespace halfwatt

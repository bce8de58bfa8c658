#include "engine/passes/update.h"

#include <fmt/format.h>

#include "base/check.h"
#include "engine/ops/builder.h"
#include "engine/ops/delayed_scaling.h"
#include "engine/passes/autodiff.h"
#include "engine/passes/delayed_scaling.h"
#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

struct Gradient {
  std::string parameter;
  Value value;
};

std::vector<Gradient> gradients_of(const Graph& graph) {
  std::vector<Gradient> all;
  for (const GraphResult& result : graph.results()) {
    if (result.name.rfind(kGradient, 0) == 0) {
      all.push_back({result.name.substr(kGradient.size()), result.value});
    }
  }
  return all;
}

// What decay would pull to zero for no reason, by timm's rule, does not.
bool decays(const StateSpec& parameter, const Optimizer& optimizer) {
  return optimizer.decay_all ||
         (!any_names(optimizer.no_decay, parameter.name) && parameter.type.shape.rank() > 1 &&
          parameter.name != "cls_token" && parameter.name != "pos_embed");
}

// Wider than 16 bits, in which an average of many steps would stand still.
StateSpec average_of(const std::string& parameter, const TensorType& type) {
  const DType dtype = promoted(type.dtype, DType::f32).value_or(DType::f32);
  return {parameter + ".ema", StateRole::average, {dtype, type.shape}, parameter, 0};
}

// Appends the update to a graph.
class Updater {
 public:
  Updater(Graph& graph, const Precision& precision, const Optimizer& optimizer)
      : graph_(&graph), build_(graph), precision_(&precision), optimizer_(&optimizer) {
    build_.set_phase(Phase::update);
  }

  /// `operands` may have no amax: it is in their histories then.
  void run(const std::vector<Gradient>& gradients, const std::vector<ScaledOperand>& operands) {
    prepare(gradients);
    for (const Gradient& gradient : gradients) {
      build_.set_name(gradient.parameter);
      update(*graph_->state(gradient.parameter), gradient.value);
    }
    for (const ScaledOperand& operand : operands) {
      update_scale_of(operand);
    }
    finish();
  }

 private:
  // What all parameters share: whether to skip, by how much to scale, how far to go.
  void prepare(const std::vector<Gradient>& gradients) {
    build_.set_name("update");
    std::vector<Value> values;
    values.reserve(gradients.size());
    for (const Gradient& each : gradients) {
      values.push_back(each.value);
    }
    const Value found = build_.add(Op::check_gradients, values);
    const Value squares = Builder::output(found, 1);
    const TensorType scalar = graph_->type(squares);
    const bool scales = precision_->scale != Precision::Scale::none;
    scale_ = scales ? build_.read(loss_scale_state()) : build_.constant(1, scalar);
    // Without a scale nothing is skipped: a run that overflows is dead, and is to be seen so.
    skip_ = scales ? found : build_.constant(0, {DType::boolean, Shape()});
    factor_ = build_.add(Op::gradient_factor, {squares, scale_},
                         {{"max_norm", optimizer_->max_norm}});
    applied_ =
        build_.read({std::string(kApplied), StateRole::counter, {DType::i64, Shape()}, {}, 0});
    rate_ = build_.add(Op::learning_rate, {applied_},
                       {{"schedule", std::string(text(optimizer_->schedule))},
                        {"base", optimizer_->rate},
                        {"warmup", optimizer_->warmup},
                        {"total", optimizer_->total},
                        {"floor", optimizer_->floor},
                        {"dtype", scalar.dtype}});
    graph_->set_result("skipped", found);
    graph_->set_result("first_bad", Builder::output(found, 2));
    graph_->set_result("gradient_norm", Builder::output(factor_, 1));
    graph_->set_result("rate", rate_);
  }

  Value moment(const StateSpec& parameter, std::string_view which) {
    return build_.read({fmt::format("{}.{}", parameter.name, which),
                        StateRole::moment,
                        {precision_->moment, parameter.type.shape},
                        parameter.name,
                        0});
  }

  void write_moment(const StateSpec& parameter, std::string_view which, Value value) {
    build_.write(fmt::format("{}.{}", parameter.name, which), value);
  }

  void update(const StateSpec& state, Value gradient) {
    const StateSpec parameter = state;  // the list of states grows
    const Value before = build_.read(parameter);
    const double decay = decays(parameter, *optimizer_) ? optimizer_->decay : 0.0;
    Value after;
    Value tally;
    if (optimizer_->kind == Optimizer::Kind::adamw) {
      after = optimize(
          Op::adamw, parameter,
          {before, moment(parameter, "exp_avg"), moment(parameter, "exp_avg_sq"), gradient},
          {{"beta1", optimizer_->beta1},
           {"beta2", optimizer_->beta2},
           {"eps", optimizer_->eps},
           {"decay", decay}});
      tally = Builder::output(after, 3);
      write_moment(parameter, "exp_avg", Builder::output(after, 1));
      write_moment(parameter, "exp_avg_sq", Builder::output(after, 2));
    } else {
      after = optimize(Op::sgd, parameter, {before, moment(parameter, "momentum"), gradient},
                       {{"momentum", optimizer_->momentum}, {"decay", decay}});
      tally = Builder::output(after, 2);
      write_moment(parameter, "momentum", Builder::output(after, 1));
    }
    build_.write(parameter.name, after);
    write_copies(parameter, after);
    write_average(parameter, after);
    graph_->set_result("tally:" + parameter.name, tally);
  }

  Value optimize(Op op,
                 const StateSpec& parameter,
                 std::vector<Value> inputs,
                 Attributes attributes) {
    inputs.insert(inputs.end(), {factor_, rate_of(parameter.name), applied_, skip_});
    attributes.set("math", precision_->arithmetic);
    const DType stored = parameter.type.dtype;
    if (precision_->stochastic && (stored == DType::f16 || stored == DType::bf16)) {
      inputs.push_back(random());
      attributes.set("path", parameter.name);
    }
    return build_.add(op, std::move(inputs), std::move(attributes));
  }

  // One value for all parameters of the same share, so that one kernel updates them.
  Value rate_of(const std::string& parameter) {
    const auto share = optimizer_->rate_shares.find(parameter);
    if (share == optimizer_->rate_shares.end() || share->second == 1) {
      return rate_;
    }
    const auto [place, is_new] = rates_.try_emplace(share->second);
    if (is_new) {
      place->second = build_.add(Op::scale, {rate_}, {{"factor", share->second}});
    }
    return place->second;
  }

  // The key of the step, which a model that drops something has already.
  Value random() {
    for (int id = 0; id < graph_->size(); ++id) {
      const Node& node = graph_->node(id);
      if (node.op == Op::input && node.attributes.word("input") == kRandom) {
        return {id, 0};
      }
    }
    return build_.input(std::string(kRandom), {DType::i64, Shape{3}});
  }

  // Whatever the model computes with follows its parameter at once.
  void write_copies(const StateSpec& parameter, Value after) {
    const std::vector<StateSpec> states = graph_->states();
    for (const StateSpec& each : states) {
      if (each.role == StateRole::copy && each.of == parameter.name) {
        build_.write(each.name, build_.cast(after, each.type.dtype));
      }
    }
  }

  void write_average(const StateSpec& parameter, Value after) {
    if (optimizer_->average == 0) {
      return;
    }
    const StateSpec average = average_of(parameter.name, parameter.type);
    const Value before = build_.read(average);
    build_.write(average.name,
                 build_.add(Op::ema, {before, after, skip_}, {{"decay", optimizer_->average}}));
  }

  void update_scale_of(const ScaledOperand& operand) {
    const StateSpec history = *graph_->state(fp8_history_of(operand.scale));
    rescale(build_, operand,
            operand.amax.empty() ? build_.read(history) : observed_history(build_, operand),
            skip_);
  }

  void finish() {
    build_.set_name("update");
    build_.write(std::string(kApplied), build_.add(Op::advance, {applied_, skip_}));
    if (precision_->scale == Precision::Scale::none) {
      return;
    }
    const Value age =
        build_.read({std::string(kScaleAge), StateRole::scaler, {DType::i32, Shape()}, {}, 0});
    const Value scale = build_.add(Op::update_scale, {scale_, age, skip_},
                                   {{"growth", optimizer_->growth},
                                    {"backoff", optimizer_->backoff},
                                    {"interval", optimizer_->interval},
                                    {"floor", optimizer_->floor_scale}});
    build_.write(std::string(kLossScale), scale);
    build_.write(std::string(kScaleAge), Builder::output(scale, 1));
    graph_->set_result("scale", scale);
  }

  Graph* graph_;
  Builder build_;
  const Precision* precision_;
  const Optimizer* optimizer_;
  Value scale_;
  Value skip_;
  Value factor_;
  Value applied_;
  Value rate_;
  std::map<double, Value> rates_;  ///< by their share of it
};

StateSpec accumulator(const Graph& graph,
                      const std::string& parameter,
                      const Precision& precision) {
  return {accumulator_name(parameter),
          StateRole::accumulator,
          {precision.accumulated, graph.state(parameter)->type.shape},
          parameter,
          0};
}

}  // namespace

std::string_view text(Optimizer::Schedule schedule) {
  switch (schedule) {
    case Optimizer::Schedule::cosine:
      return "cosine";
    case Optimizer::Schedule::linear:
      return "linear";
    case Optimizer::Schedule::constant:
      break;
  }
  return "constant";
}

std::string accumulator_name(std::string_view parameter) {
  return fmt::format("{}.gradient", parameter);
}

std::vector<std::string> gradient_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Gradient& each : gradients_of(graph)) {
    names.push_back(each.parameter);
  }
  return names;
}

Graph with_update(const Graph& graph, const Precision& precision, const Optimizer& optimizer) {
  Graph whole = graph;
  Updater(whole, precision, optimizer).run(gradients_of(graph), scaled_operands(graph));
  return whole;
}

Graph with_averages(const Graph& graph, std::span<const std::string> frozen) {
  Rewrite rewrite(graph);
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const StateSpec* state =
        node.op == Op::read ? graph.state(node.attributes.word("state")) : nullptr;
    if (!state || (state->role != StateRole::parameter && state->role != StateRole::copy)) {
      rewrite.copy(id);
      continue;
    }
    const std::string& parameter = state->of.empty() ? state->name : state->of;
    if (any_names(frozen, parameter)) {
      rewrite.copy(id);
      continue;
    }
    rewrite.follow(node);
    const Value average = rewrite.build().read(average_of(parameter, state->type));
    rewrite.map(id, rewrite.build().cast(average, state->type.dtype));
  }
  return rewrite.finish();
}

Graph with_accumulation(const Graph& graph, const Precision& precision) {
  Graph micro = graph;
  Builder build(micro);
  build.set_phase(Phase::update);
  for (const Gradient& each : gradients_of(graph)) {
    build.set_name(each.parameter);
    const StateSpec state = accumulator(graph, each.parameter, precision);
    const Value before = build.read(state);
    const Value gradient = build.cast(each.value, state.type.dtype);
    build.write(state.name, build.add(Op::add, {before, gradient}));
  }
  for (const ScaledOperand& operand : scaled_operands(graph)) {
    build.write(fp8_history_of(operand.scale), observed_history(build, operand));
  }
  return micro;
}

Graph update_of(const Graph& micro, const Precision& precision, const Optimizer& optimizer) {
  Graph graph;
  for (const StateSpec& state : micro.states()) {
    graph.declare(state);
  }
  Builder build(graph);
  build.set_phase(Phase::update);
  std::vector<Gradient> gradients;
  for (const std::string& parameter : gradient_names(micro)) {
    build.set_name(parameter);
    gradients.push_back({parameter, build.read(accumulator(micro, parameter, precision))});
  }
  std::vector<ScaledOperand> operands = scaled_operands(micro);
  for (ScaledOperand& operand : operands) {
    operand.amax.clear();  // values of the other graph, which put them into the histories
  }
  Updater(graph, precision, optimizer).run(gradients, operands);
  for (const Gradient& each : gradients) {
    build.set_name(each.parameter);
    const TensorType type = graph.type(each.value);
    // Zeros, not zero times what is there: that may be infinite.
    build.write(accumulator_name(each.parameter), build.constant(0, type));
  }
  return graph;
}

}  // namespace halfwatt

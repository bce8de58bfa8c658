#include "engine/passes/precision.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/delayed_scaling.h"
#include "engine/passes/rewrite.h"

namespace halfwatt {
namespace {

// Layers whose products may be fp8; the first and the last are sensitive and cost little.
constexpr std::string_view kFp8Layers = "blocks.*";

bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

class Caster {
 public:
  Caster(const Graph& graph,
         const Precision& precision,
         std::span<const PrecisionOverride> overrides,
         const std::optional<Fp8Scales>& scales)
      : from_(&graph),
        rewrite_(graph),
        precision_(&precision),
        overrides_(overrides),
        scales_(&scales) {}

  // Parameters of which only a copy is used are no longer read: whoever only infers need not
  // have them.
  Result<Graph> run() {
    for (int id = 0; id < from_->size(); ++id) {
      node(id);
    }
    if (!missing_.empty()) {
      return bad_input(fmt::format(
          "--scales: no scale of {}{}; `halfwatt calibrate` finds those of all "
          "layers that are computed in fp8",
          missing_.front(),
          missing_.size() == 1 ? ""
                               : fmt::format(" and {} more operands", missing_.size() - 1)));
    }
    return without_dead_nodes(rewrite_.finish());
  }

 private:
  // The last override that covers the layer, as in a file of rules.
  const Precision& row(const std::string& layer) const {
    const Precision* found = precision_;
    for (const PrecisionOverride& each : overrides_) {
      if (covers(each.pattern, layer)) {
        found = &each.precision;
      }
    }
    return *found;
  }

  void node(int id) {
    const Node& node = from_->node(id);
    const Precision& row = this->row(node.name);
    rewrite_.follow(node);
    switch (definition(node.op).numeric) {
      case NumericClass::source:
        return node.op == Op::read ? read(id, row) : void(rewrite_.copy(id));
      case NumericClass::gemm:
        return gemm(id, row);
      case NumericClass::reduce:
        return reduce(id, row);
      case NumericClass::pointwise:
      case NumericClass::shape:
      case NumericClass::update:
        break;
    }
    std::vector<Value> inputs = rewrite_.now(node.inputs);
    for (Value& input : inputs) {
      input = image(input, row);
    }
    rewrite_.map(id, rewrite_.build().add(node.op, inputs, node.attributes));
  }

  Value image(Value value, const Precision& row) {
    const Graph& graph = rewrite_.graph();
    const Op op = graph.node(value.node).op;
    const bool comes_in =
        (op == Op::input && is_float(graph.type(value).dtype)) || op == Op::normalise;
    return comes_in && row.images ? rewrite_.build().cast(value, *row.images) : value;
  }

  void read(int id, const Precision& row) {
    StateSpec state = *from_->state(from_->node(id).attributes.word("state"));
    const bool is_copied = row.masters && row.parameter != DType::f32;
    state.type.dtype = is_copied ? DType::f32 : row.parameter;
    Builder& build = rewrite_.build();
    if (is_copied) {
      rewrite_.graph().declare(state);
      rewrite_.map(id, build.read(copy_of(state, row.parameter)));
    } else {
      rewrite_.map(id, build.read(state));
    }
  }

  static StateSpec copy_of(const StateSpec& state, DType dtype) {
    return {copy_name(state.name, dtype),
            StateRole::copy,
            {dtype, state.type.shape},
            state.name,
            0};
  }

  // A parameter is not cast in every step but read from its copy, which the optimizer wrote.
  Value cast(Value value, DType dtype) {
    Builder& build = rewrite_.build();
    Graph& graph = rewrite_.graph();
    if (graph.type(value).dtype == dtype) {
      return value;
    }
    const Node from = graph.node(value.node);
    if (from.op == Op::read) {
      const StateSpec state = *graph.state(from.attributes.word("state"));
      if (state.role == StateRole::parameter) {
        return build.read(copy_of(state, dtype));
      }
    }
    if (from.op == Op::reshape && graph.node(from.inputs[0].node).op == Op::read) {
      return build.reshape(cast(from.inputs[0], dtype), graph.type(value).shape);
    }
    return build.cast(value, dtype);
  }

  void gemm(int id, const Precision& row) {
    const Node& node = from_->node(id);
    // Operands of a product of fp8 or tf32 are stored wider, and rounded by the product. Those
    // of convolutions and attention are never rounded to fp8.
    const bool is_product = node.op == Op::matmul || node.op == Op::convolution;
    const bool narrow = is_fp8(row.compute) && matches(kFp8Layers, node.name);
    const bool rounds = (narrow && node.op == Op::matmul) || row.compute == DType::tf32;
    const DType operands = is_fp8(row.compute)          ? row.output
                           : row.compute == DType::tf32 ? DType::f32
                                                        : row.compute;
    std::vector<Value> inputs = rewrite_.now(node.inputs);
    for (Value& input : inputs) {
      input = cast(input, operands);
    }
    Attributes attributes = node.attributes;
    if (rounds) {
      attributes.set("math_a", row.compute);
      attributes.set("math_b", row.compute);
    }
    if (node.op == Op::matmul && row.accumulate == DType::f16) {
      attributes.set("accumulate", row.accumulate);
    }
    if (rounds && narrow) {
      scale(row, node.name, inputs, attributes);
    }
    Builder& build = rewrite_.build();
    const Value product = build.add(node.op, inputs, std::move(attributes));
    rewrite_.map(id, is_product ? build.cast(product, row.output) : product);
  }

  // Who reads no magnitudes has them dropped again, by drop_unread_magnitudes().
  void scale(const Precision& row,
             const std::string& layer,
             std::vector<Value>& inputs,
             Attributes& attributes) {
    if (row.delayed) {
      scale_by_history(*row.delayed, layer, inputs, attributes);
    } else if (*scales_) {
      return scale_as_given(layer, inputs, attributes);
    }
    attributes.set("observe", true);
  }

  void scale_as_given(const std::string& layer,
                      std::vector<Value>& inputs,
                      Attributes& attributes) {
    const std::string parameter = parameter_of(inputs[1]);
    for (const auto operand : {Fp8Operand::input, Fp8Operand::weight}) {
      const auto given = (*scales_)->find(fp8_operand_name(layer, operand));
      if (given == (*scales_)->end()) {
        missing_.push_back(fp8_operand_name(layer, operand));
      }
      inputs.push_back(rewrite_.build().read({fp8_scale_name(layer, operand),
                                              StateRole::statistics,
                                              {DType::f32, Shape()},
                                              parameter,
                                              given == (*scales_)->end() ? 1 : given->second}));
    }
    attributes.set("scaling", layer);
  }

  // The forward reads the scales of its operands; that of the gradient is for autodiff, and the
  // histories are for the update.
  void scale_by_history(const DelayedScaling& how,
                        const std::string& layer,
                        std::vector<Value>& inputs,
                        Attributes& attributes) {
    Builder& build = rewrite_.build();
    const std::string parameter = parameter_of(inputs[1]);
    for (const auto operand : {Fp8Operand::input, Fp8Operand::weight, Fp8Operand::gradient}) {
      const StateSpec scale{
          fp8_scale_name(layer, operand), StateRole::amax, {DType::f32, Shape()}, parameter, 1};
      build.graph().declare(scale);
      build.graph().declare({fp8_history_name(layer, operand),
                             StateRole::amax,
                             {DType::f32, Shape{how.history}},
                             parameter,
                             0});
      if (operand != Fp8Operand::gradient) {
        inputs.push_back(build.read(scale));
      }
    }
    const bool is_max = how.algorithm == DelayedScaling::Algorithm::max;
    attributes.set("scaling", layer);
    attributes.set("margin", how.margin);
    attributes.set("algorithm", std::string(is_max ? "max" : "most_recent"));
  }

  // Empty where the value is none.
  std::string parameter_of(Value value) const {
    const Graph& graph = rewrite_.graph();
    while (graph.node(value.node).op == Op::reshape) {
      value = graph.node(value.node).inputs[0];
    }
    const Node& node = graph.node(value.node);
    if (node.op != Op::read) {
      return {};
    }
    const StateSpec& state = *graph.state(node.attributes.word("state"));
    return state.of.empty() ? state.name : state.of;
  }

  void reduce(int id, const Precision& row) {
    const Node& node = from_->node(id);
    std::vector<Value> inputs = rewrite_.now(node.inputs);
    const bool is_norm = node.op == Op::layer_norm;
    const std::optional<DType> dtype = is_norm ? row.norm : row.loss;
    for (Value& input : inputs) {
      if (dtype && is_float(rewrite_.graph().type(input).dtype)) {
        input = cast(input, *dtype);
      }
    }
    rewrite_.map(id, rewrite_.build().add(node.op, inputs, node.attributes));
  }

  const Graph* from_;
  Rewrite rewrite_;
  const Precision* precision_;
  std::span<const PrecisionOverride> overrides_;
  const std::optional<Fp8Scales>* scales_;
  std::vector<std::string> missing_;  ///< operands that `scales_` does not have
};

bool covers_any(const Graph& graph, const std::string& pattern) {
  for (const Node& node : graph.nodes()) {
    if (covers(pattern, node.name)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool accumulates_narrow(const Precision& precision,
                        std::span<const PrecisionOverride> overrides) {
  return precision.accumulate == DType::f16 ||
         std::any_of(overrides.begin(), overrides.end(), [](const PrecisionOverride& each) {
           return each.precision.accumulate == DType::f16;
         });
}

std::string copy_name(std::string_view parameter, DType dtype) {
  return fmt::format("{}@{}", parameter, text(dtype));
}

Result<Graph> with_precision(const Graph& graph,
                             const Precision& precision,
                             std::span<const PrecisionOverride> overrides,
                             const std::optional<Fp8Scales>& scales) {
  for (const PrecisionOverride& each : overrides) {
    if (!covers_any(graph, each.pattern)) {
      return bad_input(
          fmt::format("--override {}: no layer is called so; `halfwatt plan "
                      "--print-after precision` lists them",
                      each.pattern));
    }
  }
  return Caster(graph, precision, overrides, scales).run();
}

}  // namespace halfwatt

#include "engine/plan/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kMostElements = 600;

const TensorType kFlag{DType::boolean, Shape()};
const TensorType kCount{DType::i64, Shape()};
const TensorType kScalar{DType::f32, Shape()};

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : build_(graph_), rng_(seed) {}

  Graph run() {
    random_ = keep(build_.input("random", {DType::i64, Shape{3}}));
    for (int at = 0; at < 3; ++at) {
      source();
    }
    const std::size_t nodes = 10 + below(50);
    while (graph_.size() < static_cast<int>(nodes)) {
      (this->*kMoves[below(kMoves.size())])();
    }
    choose_results();
    return std::move(graph_);
  }

 private:
  using Move = void (RandomGraph::*)();
  static const std::vector<Move> kMoves;

  // A value that may still be used, and the state that it shows as it was before the step.
  struct Open {
    Value value;
    std::string shown;
  };

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(rng_.next() % count); }
  bool chance(double share) { return rng_.uniform() < share; }

  Value keep(Value value, const std::string& shown = {}) {
    for (int at = 0; at < static_cast<int>(graph_.node(value.node).outputs.size()); ++at) {
      open_.push_back({{value.node, at}, shown});
    }
    return value;
  }

  const TensorType& type(Value value) const { return graph_.type(value); }

  // The newer of two, so that most values are used soon and some late.
  template <class Fits>
  std::optional<Value> any(Fits fits) {
    std::vector<Value> fitting;
    for (const Open& each : open_) {
      if (fits(type(each.value))) {
        fitting.push_back(each.value);
      }
    }
    return fitting.empty()
               ? std::nullopt
               : std::optional(fitting[std::max(below(fitting.size()), below(fitting.size()))]);
  }
  std::optional<Value> any_float(std::size_t least_rank = 0) {
    return any([&](const TensorType& each) {
      return is_float(each.dtype) && each.shape.rank() >= least_rank;
    });
  }
  std::optional<Value> any_like(Value other) {
    const TensorType wanted = type(other);
    return any([&](const TensorType& each) { return each == wanted; });
  }

  DType some_dtype() {
    constexpr std::array kDtypes = {DType::f32, DType::f32, DType::f16, DType::bf16};
    return kDtypes[below(kDtypes.size())];
  }
  Shape some_shape() {
    const std::array<Shape, 8> shapes = {Shape(),           Shape{6},        Shape{4, 6},
                                         Shape{2, 3, 6},    Shape{2, 3, 12}, Shape{1, 1, 24},
                                         Shape{2, 1, 4, 4}, Shape{24}};
    return shapes[below(shapes.size())];
  }

  Value read(TensorType type, StateRole role = StateRole::parameter) {
    const std::string name = fmt::format("s{}", graph_.states().size());
    return keep(build_.read({name, role, type, {}, 0}), name);
  }
  // A parameter: sometimes one that is read already.
  Value parameter(TensorType type) {
    const auto known = any([&](const TensorType& each) { return each == type; });
    return known && chance(0.3) ? *known : read(type);
  }
  Value counter() {
    const auto known = any([](const TensorType& each) { return each == kCount; });
    return known && chance(0.7) ? *known : read(kCount, StateRole::counter);
  }
  Value flag() {
    const auto known = any([](const TensorType& each) { return each == kFlag; });
    return known ? *known : keep(build_.constant(0, kFlag));
  }
  Value scalar() {
    const auto known =
        any([](const TensorType& each) { return each.dtype == DType::f32 && each == kScalar; });
    return known && chance(0.8) ? *known : keep(build_.constant(2, kScalar));
  }

  void write(const std::string& state, Value value) {
    if (!written_.insert(state).second) {
      return;
    }
    build_.write(state, value);
    std::erase_if(open_, [&](const Open& each) { return each.shown == state; });
  }
  void write_new(Value value) {
    const std::string name = fmt::format("s{}", graph_.states().size());
    graph_.declare({name, StateRole::statistics, type(value), {}, 0});
    write(name, value);
  }
  // Back into the state that `before` was read from, if it is one and open.
  void write_back(Value before, Value after) {
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& each) {
      return each.value == before && !each.shown.empty();
    });
    const bool fits = found != open_.end() && graph_.state(found->shown)->type == type(after);
    if (fits) {
      write(std::string(found->shown), after);
    }
  }

  void source() {
    const TensorType type{some_dtype(), some_shape()};
    if (chance(0.4)) {
      keep(build_.input(fmt::format("x{}", graph_.size()), type));
    } else if (chance(0.2)) {
      keep(build_.constant(1, type));
    } else {
      read(type);
    }
  }

  void bytes() {
    const Value pictures =
        build_.input(fmt::format("x{}", graph_.size()), {DType::u8, Shape{2, 1, 4, 4}});
    keep(build_.add(
        Op::normalise, {keep(pictures)},
        {{"mean", std::vector<double>{0.5}}, {"deviation", std::vector<double>{2}}}));
  }

  void unary() {
    const auto x = any_float();
    if (!x) {
      return;
    }
    switch (below(4)) {
      case 0:
        keep(build_.add(Op::gelu, {*x}));
        break;
      case 1:
        keep(build_.add(Op::scale, {*x}, {{"factor", 2.0}}));
        break;
      case 2:
        keep(build_.add(Op::scale, {*x, scalar()}));
        break;
      default:
        keep(build_.add(Op::cast, {*x}, {{"to", some_dtype()}}));
    }
  }

  void drop() {
    if (const auto x = any_float(1)) {
      const Op op = chance(0.5) ? Op::dropout : Op::drop_path;
      keep(build_.add(op, {*x, random_}, {{"rate", 0.1}, {"path", std::string("a")}}));
    }
  }

  void add() {
    const auto x = any_float();
    if (!x) {
      return;
    }
    Value y = *x;
    if (chance(0.4)) {
      y = *any_like(*x);
    } else if (chance(0.4)) {
      y = parameter({type(*x).dtype, Shape{type(*x).shape.last(0)}});
    } else if (chance(0.4) && type(*x).shape.rank() > 0) {
      y = reshaped(*x, Shape{1, type(*x).shape.rows(), type(*x).shape.last(0)});
    }
    const auto shape = broadcast(type(*x).shape, type(y).shape);
    if (shape && shape->elements() <= kMostElements) {
      keep(chance(0.5) ? build_.add(Op::add, {*x, y}) : build_.add(Op::add, {y, *x}));
    }
  }

  void gelus() {
    const auto x = any_float(1);
    if (x && chance(0.5)) {
      keep(build_.add(Op::gelu_gradient, {*any_like(*x), *x}));
    } else if (x) {
      keep(build_.add(Op::gelu, {*x}));
    }
  }

  Value reshaped(Value x, Shape shape) {
    const auto open = std::find_if(open_.begin(), open_.end(),
                                   [&](const Open& each) { return each.value == x; });
    const std::string shown = open == open_.end() ? "" : open->shown;
    return keep(build_.add(Op::reshape, {x}, {{"shape", shape}}), shown);
  }

  void reshape() {
    std::optional<Value> x = any([](const TensorType& each) { return each.shape.rank() > 0; });
    for (std::size_t times = 1 + below(3); x && times > 0; --times) {
      const std::int64_t all = type(*x).shape.elements();
      const std::int64_t rows = all % 6 == 0 ? 6 : 1;
      const std::array<Shape, 4> shapes = {Shape{all}, Shape{rows, all / rows},
                                           Shape{all / rows, rows}, Shape{1, all, 1}};
      x = reshaped(*x, shapes[below(shapes.size())]);
    }
  }

  void spread() {
    const auto x = any([](const TensorType& each) {
      return is_float(each.dtype) && each.shape.rank() == 1 &&
             each.shape.elements() * 4 <= kMostElements;
    });
    if (x) {
      keep(build_.add(Op::expand, {*x}, {{"shape", Shape{4, type(*x).shape[0]}}}));
    }
  }

  void sum() {
    const auto x = any_float(2);
    if (x && chance(0.5)) {
      keep(build_.add(Op::sum_to, {*x}, {{"shape", Shape{type(*x).shape.last(0)}}}));
    } else if (x) {
      keep(build_.add(Op::mean, {*x}, {{"axis", std::int64_t{0}}}));
    }
  }

  void cut() {
    const auto x = any_float(1);
    if (!x) {
      return;
    }
    const std::int64_t extent = type(*x).shape[0];
    const Value part = keep(build_.add(
        Op::slice, {*x},
        {{"axis", std::int64_t{0}}, {"begin", extent / 2}, {"count", extent - extent / 2}}));
    if (chance(0.3)) {
      keep(build_.add(Op::slice_gradient, {part},
                      {{"axis", std::int64_t{0}}, {"begin", extent / 2}, {"extent", extent}}));
    }
  }

  void join() {
    const auto x = any_float(1);
    if (x && type(*x).shape.elements() * 3 <= kMostElements) {
      keep(build_.add(Op::concatenate, {*x, *any_like(*x), *x}, {{"axis", std::int64_t{0}}}));
    }
  }

  void images() {
    const auto x = any([](const TensorType& each) {
      return is_float(each.dtype) && each.shape.rank() == 4 && each.shape.elements() <= 64;
    });
    if (!x) {
      return;
    }
    const TensorType of = type(*x);
    const Value weights = parameter({of.dtype, Shape{3, of.shape[1], 1, 1}});
    Attributes how{{"stride", std::int64_t{2}}, {"padding", std::int64_t{0}}};
    const Value y = keep(build_.add(Op::convolution, {*x, weights}, how));
    if (chance(0.4)) {
      how.set("shape", of.shape);
      keep(build_.add(Op::convolution_input_gradient, {y, weights}, how));
    } else if (chance(0.6)) {
      how.set("shape", type(weights).shape);
      how.set("bias", true);
      keep(build_.add(Op::convolution_weight_gradient, {y, *x}, how));
    }
  }

  void turn() {
    if (const auto x = any_float(2)) {
      keep(build_.add(Op::transpose, {*x}));
    }
  }

  void product() {
    const auto x = any_float(2);
    if (!x) {
      return;
    }
    const TensorType of = type(*x);
    const std::int64_t width = of.shape.last(0);
    if (chance(0.2)) {
      if (width * width <= kMostElements) {
        keep(build_.add(Op::matmul, {*x, *any_like(*x)}, {{"transpose_a", true}}));
      }
    } else if (width * 6 <= kMostElements && of.shape.rows() * 6 <= kMostElements) {
      const auto bias =
          chance(0.5) ? std::optional(parameter({of.dtype, Shape{6}})) : std::nullopt;
      const Value weight = parameter({of.dtype, Shape{6, width}});
      if (of.dtype != DType::f64 && chance(0.2)) {
        keep(build_.add(Op::matmul, {*x, weight, scalar(), scalar()},
                        {{"transpose_b", true},
                         {"math_a", DType::e4m3},
                         {"math_b", DType::e4m3},
                         {"scaling", std::string("layer")},
                         {"observe", true}}));
      } else if (chance(0.2)) {
        keep(build_.add(Op::linear, {*x, weight},
                        {{"columns", std::int64_t{3}}, {"steps", std::int64_t{1}}}));
      } else {
        keep(build_.linear(*x, weight, bias));
      }
    }
  }

  void norm() {
    const auto x = any_float(1);
    if (!x) {
      return;
    }
    const TensorType weight{DType::f32, Shape{type(*x).shape.last(0)}};
    const Value gamma = parameter(weight);
    const Value beta = parameter(weight);
    if (chance(0.3)) {
      keep(build_.add(Op::add_layer_norm, {*x, *any_like(*x), gamma, beta}, {{"eps", 1e-6}}));
      return;
    }
    const Value y = keep(build_.add(Op::layer_norm, {*x, gamma, beta}, {{"eps", 1e-6}}));
    if (chance(0.4)) {
      keep(build_.add(Op::layer_norm_gradient,
                      {*any_like(y), *x, gamma, Builder::output(y, 1), Builder::output(y, 2)}));
    }
  }

  void attend() {
    const auto x = any([](const TensorType& each) {
      return is_float(each.dtype) && each.shape.rank() == 3 && each.shape[2] % 6 == 0;
    });
    if (!x) {
      return;
    }
    const Attributes heads{{"heads", std::int64_t{2}}};
    const Value y = keep(build_.add(Op::attention, {*x}, heads));
    if (chance(0.4)) {
      keep(build_.add(Op::attention_gradient, {*any_like(y), *x, y, Builder::output(y, 1)},
                      heads));
    }
  }

  void loss() {
    const auto x = any(
        [](const TensorType& each) { return is_float(each.dtype) && each.shape.rank() == 2; });
    if (!x) {
      return;
    }
    const bool binary = chance(0.5);
    const TensorType labels{DType::i64, Shape{type(*x).shape[0]}};
    const Value label = binary ? *any_like(*x) : keep(build_.constant(0, labels));
    const Value valid = counter();
    const Attributes smoothing{{"smoothing", 0.0}};
    const Value y = keep(binary ? build_.add(Op::binary_cross_entropy, {*x, label, valid})
                                : build_.add(Op::cross_entropy, {*x, label, valid}, smoothing));
    if (chance(0.4)) {
      const Op op = binary ? Op::binary_cross_entropy_gradient : Op::cross_entropy_gradient;
      keep(build_.add(op, {y, *x, label, valid}, binary ? Attributes() : smoothing));
    }
  }

  void check() {
    const auto x = any_float();
    const auto y = any_float();
    if (!x || !y) {
      return;
    }
    const Value found = keep(build_.add(Op::check_gradients, {*x, *y, *x}));
    if (type(Builder::output(found, 1)) == kScalar) {
      keep(build_.add(Op::gradient_factor, {Builder::output(found, 1), scalar()},
                      {{"max_norm", 1.0}}));
    }
    keep(build_.add(Op::learning_rate, {counter()},
                    {{"schedule", std::string("constant")},
                     {"base", 1.0},
                     {"warmup", std::int64_t{0}},
                     {"total", std::int64_t{9}},
                     {"floor", 0.0},
                     {"dtype", DType::f32}}));
  }

  void optimize() {
    const auto gradient = any_float();
    if (!gradient) {
      return;
    }
    const bool is_adamw = chance(0.6);
    const std::size_t states = is_adamw ? 3 : 2;
    std::vector<Value> inputs;
    std::vector<std::vector<Value>> before;
    for (std::size_t left = 1 + below(3); left > 0; --left) {
      const auto another = before.empty() ? gradient : any_float();
      if (!another || type(*another).dtype != type(*gradient).dtype) {
        continue;
      }
      before.emplace_back();
      for (std::size_t at = 0; at < states; ++at) {
        before.back().push_back(parameter({DType::f32, type(*another).shape}));
      }
      inputs.insert(inputs.end(), before.back().begin(), before.back().end());
      inputs.push_back(*another);
    }
    inputs.insert(inputs.end(), {scalar(), scalar(), counter(), flag()});
    Attributes attributes = {{"decay", 0.0}, {"math", DType::f32}};
    if (is_adamw) {
      attributes.set("beta1", 0.9);
      attributes.set("beta2", 0.9);
      attributes.set("eps", 1e-8);
    } else {
      attributes.set("momentum", 0.9);
    }
    const Value after =
        keep(build_.add(is_adamw ? Op::adamw : Op::sgd, std::move(inputs), attributes));
    for (std::size_t at = 0; at < before.size(); ++at) {
      finish(before[at], Builder::output(after, static_cast<int>(at * (states + 1))));
    }
  }

  // Mostly each output, `first` and those behind it, into the state of the input of its number,
  // sometimes into another's.
  void finish(std::vector<Value> before, Value first) {
    if (chance(0.3)) {
      std::reverse(before.begin(), before.end());
    }
    for (std::size_t at = 0; at < before.size(); ++at) {
      if (chance(0.8)) {
        write_back(before[at], Builder::output(first, first.output + static_cast<int>(at)));
      }
    }
  }

  void small_updates() {
    const Value skip = flag();
    if (chance(0.3)) {
      const Value before = counter();
      write_back(before, keep(build_.add(Op::advance, {before, skip})));
    } else if (chance(0.4)) {
      const Value scale = read(kScalar, StateRole::scaler);
      const Value age = read({DType::i32, Shape()}, StateRole::scaler);
      const Value after = keep(build_.add(
          Op::update_scale, {scale, age, skip},
          {{"growth", 2.0}, {"backoff", 0.5}, {"interval", std::int64_t{9}}, {"floor", 1.0}}));
      finish({scale, age}, after);
    } else if (chance(0.4)) {
      const Value history = read({DType::f32, Shape{5}}, StateRole::amax);
      const Value seen = keep(build_.add(Op::observe_amax, {history, scalar(), scalar()}));
      const Value scale = read(kScalar, StateRole::amax);
      const Value after = keep(build_.add(Op::rescale, {seen, scale, skip},
                                          {{"format", DType::e4m3},
                                           {"margin", std::int64_t{0}},
                                           {"algorithm", std::string("max")}}));
      finish({history, scale}, after);
    } else if (const auto value = any_float()) {
      const Value before = parameter({DType::f32, type(*value).shape});
      write_back(before, keep(build_.add(Op::ema, {before, *value, skip}, {{"decay", 0.9}})));
    }
  }

  // Any value to any state that has its type, read or not; sometimes to two.
  void store() {
    const Value value = open_[below(open_.size())].value;
    std::vector<std::string> fitting;
    for (const Open& each : open_) {
      if (!each.shown.empty() && graph_.state(each.shown)->type == type(value)) {
        fitting.push_back(each.shown);
      }
    }
    const bool is_new = fitting.empty() || chance(0.3);
    if (is_new) {
      write_new(value);
    } else {
      write(fitting[below(fitting.size())], value);
    }
    const bool is_open = std::any_of(open_.begin(), open_.end(),
                                     [&](const Open& each) { return each.value == value; });
    if (is_open && chance(0.3)) {
      write_new(value);
    }
  }

  // x, then f(x), into the state that x was.
  void in_place() {
    std::vector<Open> states;
    for (const Open& each : open_) {
      if (!each.shown.empty() && is_float(type(each.value).dtype)) {
        states.push_back(each);
      }
    }
    if (states.empty()) {
      return;
    }
    const Open from = states[below(states.size())];
    const Value other = *any_like(from.value);
    const Value after =
        keep(chance(0.5) ? build_.add(Op::add, {from.value, other})
                         : build_.add(Op::scale, {from.value}, {{"factor", 0.5}}));
    const TensorType& wanted = graph_.state(from.shown)->type;
    if (wanted == type(after)) {
      write(std::string(from.shown), after);
    } else if (wanted.dtype == type(after).dtype) {
      write(std::string(from.shown), reshaped(after, wanted.shape));
    }
  }

  void choose_results() {
    for (std::size_t count = 1 + below(5); count > 0; --count) {
      const Value value = open_[below(open_.size())].value;
      graph_.set_result(fmt::format("r{}", count), value);
    }
  }

  Graph graph_;
  Builder build_;
  Rng rng_;
  Value random_;
  std::vector<Open> open_;
  std::set<std::string> written_;
};

const std::vector<RandomGraph::Move> RandomGraph::kMoves = {
    &RandomGraph::source,        &RandomGraph::unary,    &RandomGraph::unary,
    &RandomGraph::drop,          &RandomGraph::add,      &RandomGraph::add,
    &RandomGraph::gelus,         &RandomGraph::reshape,  &RandomGraph::spread,
    &RandomGraph::sum,           &RandomGraph::cut,      &RandomGraph::join,
    &RandomGraph::images,        &RandomGraph::turn,     &RandomGraph::product,
    &RandomGraph::norm,          &RandomGraph::attend,   &RandomGraph::loss,
    &RandomGraph::check,         &RandomGraph::store,    &RandomGraph::optimize,
    &RandomGraph::small_updates, &RandomGraph::in_place, &RandomGraph::bytes};

}  // namespace

Graph random_graph(std::uint64_t seed) { return RandomGraph(seed).run(); }

}  // namespace halfwatt

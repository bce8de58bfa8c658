#include "engine/models/layers.h"

namespace halfwatt {

Value Layers::parameter(const std::string& name, Shape shape) {
  return build_->read({name, StateRole::parameter, {DType::f32, shape}, {}, 0});
}

Value Layers::linear(const std::string& path, Value x, std::int64_t features) {
  build_->set_name(path);
  const std::int64_t width = build_->type(x).shape.last(0);
  const Value weight = parameter(path + ".weight", Shape{features, width});
  const Value bias = parameter(path + ".bias", Shape{features});
  return build_->linear(x, weight, bias);
}

Value Layers::layer_norm(const std::string& path, Value x, double eps) {
  build_->set_name(path);
  const Shape width{build_->type(x).shape.last(0)};
  const Value gamma = parameter(path + ".weight", width);
  const Value beta = parameter(path + ".bias", width);
  return build_->add(Op::layer_norm, {x, gamma, beta}, {{"eps", eps}});
}

Value Layers::self_attention(const std::string& path, Value x, std::int64_t heads) {
  const std::int64_t width = build_->type(x).shape.last(0);
  const Value qkv = linear(path + ".qkv", x, 3 * width);
  build_->set_name(path);
  const Value out = build_->add(Op::attention, {qkv}, {{"heads", heads}});
  return linear(path + ".proj", out, width);
}

Value Layers::mlp(const std::string& path, Value x, std::int64_t hidden) {
  const std::int64_t width = build_->type(x).shape.last(0);
  const Value inner = linear(path + ".fc1", x, hidden);
  build_->set_name(path + ".act");
  return linear(path + ".fc2", build_->add(Op::gelu, {inner}), width);
}

Value Layers::dropout(const std::string& path,
                      Value x,
                      double rate,
                      std::optional<Value> random) {
  if (rate == 0 || !random) {
    return x;
  }
  build_->set_name(path);
  return build_->add(Op::dropout, {x, *random}, {{"rate", rate}, {"path", path}});
}

Value Layers::drop_path(const std::string& path,
                        Value x,
                        double rate,
                        std::optional<Value> random) {
  if (rate == 0 || !random) {
    return x;
  }
  build_->set_name(path);
  return build_->add(Op::drop_path, {x, *random}, {{"rate", rate}, {"path", path}});
}

}  // namespace halfwatt

#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/op_def.h"

// What tests of the output rules are written with.

namespace halfwatt {

using Types = std::vector<TensorType>;

inline TensorType f32(Shape shape) { return {DType::f32, shape}; }
inline TensorType f16(Shape shape) { return {DType::f16, shape}; }
inline TensorType i64(Shape shape) { return {DType::i64, shape}; }
inline const TensorType kScalar = f32(Shape());
inline const TensorType kFlag{DType::boolean, Shape()};
inline const TensorType kCount = i64(Shape());
inline const TensorType kAge{DType::i32, Shape()};
inline const TensorType kTally = i64(Shape{2});
inline const TensorType kKey = i64(Shape{3});

inline Attributes axis(std::int64_t at) { return {{"axis", at}}; }
inline Attributes shape(Shape to) { return {{"shape", to}}; }
inline Attributes range(const char* length,
                        std::int64_t at,
                        std::int64_t begin,
                        std::int64_t count) {
  return {{"axis", at}, {"begin", begin}, {length, count}};
}
inline Attributes typed(DType dtype, Shape to) { return {{"dtype", dtype}, {"shape", to}}; }
inline Attributes scaled(DType format) {
  return {{"math_a", format}, {"math_b", format}, {"scaling", std::string("fc1")}};
}
inline Attributes observed(Attributes attributes) {
  attributes.set("observe", true);
  return attributes;
}
inline Attributes heads(std::int64_t count) { return {{"heads", count}}; }
inline Attributes strided(std::int64_t stride,
                          std::int64_t padding,
                          std::optional<Shape> to = std::nullopt) {
  Attributes all = {{"stride", stride}, {"padding", padding}};
  if (to) {
    all.set("shape", *to);
  }
  return all;
}
inline Attributes with_bias(Attributes attributes) {
  attributes.set("bias", true);
  return attributes;
}
inline Attributes rate(double share) {
  return {{"rate", share}, {"path", std::string("blocks.0")}};
}

inline TensorType u8(Shape shape) { return {DType::u8, shape}; }
inline Attributes normal(std::vector<double> means, std::vector<double> deviations) {
  return {{"mean", std::move(means)}, {"deviation", std::move(deviations)}};
}

struct Refused {
  Op op;
  Types inputs;
  Attributes attributes;
  std::string message;
};

inline void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& each : all) {
    Node node;
    node.op = each.op;
    node.attributes = each.attributes;
    const auto outputs = definition(each.op).outputs(node, each.inputs);
    ASSERT_FALSE(outputs) << name_of(each.op) << ": " << each.message;
    EXPECT_EQ(outputs.error().message, each.message) << name_of(each.op);
    EXPECT_EQ(outputs.error().kind, ErrorKind::bad_input);
  }
}

}  // namespace halfwatt

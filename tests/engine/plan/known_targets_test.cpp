#include "engine/plan/known_targets.h"

#include <gtest/gtest.h>

#include "engine/ops/builder.h"

namespace halfwatt {
namespace {

// A product in `dtype`, rounded to `math` first.
Support product(const Target& target, DType dtype, std::optional<DType> math = {}) {
  Graph graph;
  Builder build(graph);
  const Value a = build.constant(1, {dtype, Shape{8, 8}});
  Attributes attributes;
  if (math) {
    attributes.set("math_a", *math);
    attributes.set("math_b", *math);
  }
  const Value c = build.add(Op::matmul, {a, a}, attributes);
  return target.support(graph, c.node);
}

Target known(const std::string& name) {
  auto target = target_named(name);
  EXPECT_TRUE(target) << target.error().message;
  return *target;
}

TEST(KnownTargets, are_devices_with_rates_and_say_where_these_come_from) {
  for (const std::string& name : known_targets()) {
    const Target target = known(name);
    EXPECT_EQ(target.name, name);
    EXPECT_FALSE(target.source.empty());
    EXPECT_EQ(has_rates(target), name != "cpu");
    EXPECT_EQ(target.memory.has_value(), name != "cpu");
  }
}

TEST(KnownTargets, of_one_kind_are_told_apart_by_a_number) {
  EXPECT_EQ(known("t4:1").name, "t4:1");
  EXPECT_EQ(known("t4:1").memory, known("t4").memory);
  EXPECT_EQ(known("cpu:0").name, "cpu:0");
}

TEST(KnownTargets, refuse_products_that_they_have_no_units_for) {
  const Support bf16 = product(known("t4"), DType::bf16);
  EXPECT_EQ(bf16.kind, Support::Kind::refused);
  EXPECT_EQ(bf16.reason, "it has no products of bf16, only of fp64, fp32, fp16");
  EXPECT_EQ(product(known("t4"), DType::f16).kind, Support::Kind::native);
  EXPECT_EQ(product(known("t4"), DType::f32, DType::tf32).kind, Support::Kind::refused);
  for (const auto name : {"h200", "rtx4090"}) {
    EXPECT_EQ(product(known(name), DType::bf16, DType::e4m3).kind, Support::Kind::native);
    EXPECT_EQ(product(known(name), DType::bf16, DType::e5m2).kind, Support::Kind::native);
  }
  for (const auto name : {"a100", "rtx3090", "t4"}) {
    EXPECT_EQ(product(known(name), DType::bf16, DType::e4m3).kind, Support::Kind::refused);
  }
}

TEST(KnownTargets, are_listed_to_who_asks_for_another) {
  const auto refused = target_named("h300");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "no target h300; there are h200, a100, rtx3090, rtx4090, t4, cpu, or a JSON file");
  EXPECT_FALSE(target_named(""));
  EXPECT_FALSE(target_named("tests"));
}

TEST(KnownTargets, are_read_from_json) {
  const auto target = target_of_json(
      R"({"name": "D1", "memory_bytes": 1e9, "bytes_per_second": 2e11,
          "flops_per_second": {"fp32": 1e13, "fp8": 4e13}, "link_bytes_per_second": 1e9})",
      "d1.json");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->name, "D1");
  EXPECT_EQ(target->memory, Bytes(1e9));
  EXPECT_EQ(target->flops.at(DType::f32), 1e13);
  EXPECT_EQ(target->flops.at(DType::e5m2), 4e13);
  EXPECT_EQ(target->link, 1e9);
  EXPECT_EQ(target->launch, Seconds(2e-6));
  EXPECT_EQ(target->source, "d1.json");
  EXPECT_EQ(product(*target, DType::f16).kind, Support::Kind::refused);
}

TEST(KnownTargets, are_refused_in_one_line_where_json_says_something_else) {
  const std::string rest =
      R"("memory_bytes": 1e9, "bytes_per_second": 2e11, "flops_per_second": {"fp32": 1e13}})";
  const auto error = [](const std::string& json) {
    const auto target = target_of_json(json, "d1.json");
    return target ? "" : target.error().message;
  };
  EXPECT_EQ(error(R"({"name": "D1", )" + rest), "");
  EXPECT_EQ(error("not json"), "d1.json: no JSON object of a target");
  EXPECT_EQ(error("[]"), "d1.json: no JSON object of a target");
  EXPECT_EQ(error("{" + rest), "d1.json: field name: needed a text");
  EXPECT_EQ(error(R"({"name": 3, )" + rest), "d1.json: field name: needed a text");
  EXPECT_NE(error(R"({"name": "D1", "watts": 3, )" + rest).find("field watts: not known"),
            std::string::npos);
  EXPECT_EQ(error(R"({"name": "D1", "launch_s": -1, )" + rest),
            "d1.json: field launch_s: needed a number above 0 and up to 1e18");
  EXPECT_EQ(error(R"({"name": "D1", "workspace_bytes": 1e30, )" + rest),
            "d1.json: field workspace_bytes: needed a number above 0 and up to 1e18");
  EXPECT_NE(error(R"({"name": "D1", "flops_per_second": {"fp16x": 1}})").find("fp16x"),
            std::string::npos);
  EXPECT_NE(error(R"({"name": "D1", "flops_per_second": {}})").find("one rate at least"),
            std::string::npos);
  EXPECT_NE(error(R"({"name": "D1", "flops_per_second": {"fp32": "fast"}})").find("fp32"),
            std::string::npos);
}

}  // namespace
}  // namespace halfwatt

// A model split over two devices by the placement pass computes what one device computes, to
// the bit.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/exec/session.h"
#include "engine/models/initial.h"
#include "engine/models/vit.h"
#include "engine/passes/pipeline.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kBatch = 4;

struct Run {
  std::vector<std::unique_ptr<Backend>> backends;
  States states;
  std::unique_ptr<Session> session;
};

std::unique_ptr<Run> open(const std::string& place, std::string_view mode, bool recompute) {
  auto run = std::make_unique<Run>();
  const VitConfig config = *vit_named("vit_micro_patch4_16");
  Compilation asked;
  asked.precision = *precision_named(mode);
  asked.optimizer = Optimizer{};
  asked.recompute = recompute;
  for (const char* name : {"cpu:0", "cpu:1"}) {
    if (asked.targets.empty() || !place.empty()) {
      run->backends.push_back(std::move(*open_cpu({name, 2})));
      asked.targets.push_back(run->backends.back()->target());
    }
  }
  if (!place.empty()) {
    asked.place = *placement_rules(place);
  }
  const auto compiled = compile(vit(config, kBatch, ModelMode::train), asked);
  EXPECT_TRUE(compiled) << compiled.error().message;
  auto plan = lower(compiled->graph, asked.targets);
  EXPECT_TRUE(plan) << plan.error().message;
  std::vector<Plan> plans;
  plans.push_back(std::move(*plan));
  std::vector<Backend*> backends;
  for (const auto& each : run->backends) {
    backends.push_back(each.get());
  }
  auto session = Session::open(std::move(plans), backends, run->states);
  EXPECT_TRUE(session) << session.error().message;
  run->session = std::move(*session);
  for (const StateSpec& state : vit_parameters(config)) {
    EXPECT_TRUE(run->states.load(state.name, initial_value(state, 7).view()));
  }
  return run;
}

void bind(Session& session) {
  Rng rng(11);
  for (const PlanInput& input : session.plan(0).inputs) {
    Tensor value(input.type);
    if (is_float(input.type.dtype)) {
      Tensor wide(TensorType{DType::f32, input.type.shape});
      for (float& each : wide.as<float>()) {
        each = static_cast<float>(rng.normal());
      }
      convert(wide.view(), value.view());
    } else {
      const auto numbers = value.as<std::int64_t>();
      std::fill(numbers.begin(), numbers.end(), input.name == "valid" ? kBatch : 3);
    }
    session.bind(0, input.name, value.view());
  }
}

void expect_equal(Run& one, Run& other) {
  for (int step = 0; step < 3; ++step) {
    bind(*one.session);
    bind(*other.session);
    ASSERT_TRUE(one.session->run(0));
    ASSERT_TRUE(other.session->run(0));
    EXPECT_EQ(one.session->result(0, "loss").as<float>()[0],
              other.session->result(0, "loss").as<float>()[0]);
  }
  for (const std::string& name : one.states.names()) {
    const Tensor a = one.states.save(name);
    const Tensor b = other.states.save(name);
    EXPECT_TRUE(
        std::equal(a.view().bytes().begin(), a.view().bytes().end(), b.view().bytes().begin()))
        << name;
  }
}

TEST(Placed, computes_on_two_devices_what_one_computes) {
  for (const auto mode : {"fp32", "amp-fp16", "bf16", "fp8-delayed"}) {
    for (const std::string place :
         {"blocks.1.*=cpu:1", "blocks.0.*=cpu:1", "fp32=cpu:0,16bit=cpu:1"}) {
      if (place.find("16bit") != std::string::npos && std::string_view(mode) == "fp32") {
        continue;  // which computes nothing in 16 bits
      }
      const auto one = open("", mode, false);
      const auto two = open(place, mode, false);
      expect_equal(*one, *two);
    }
  }
}

TEST(Placed, and_computed_twice_too) {
  const auto one = open("", "amp-bf16", false);
  const auto two = open("blocks.1.*=cpu:1", "amp-bf16", true);
  expect_equal(*one, *two);
}

}  // namespace
}  // namespace halfwatt

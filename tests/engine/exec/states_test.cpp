#include "engine/exec/states.h"

#include <gtest/gtest.h>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/plan/plan.h"

namespace halfwatt {
namespace {

StateSpec spec(const std::string& name, StateRole role, std::int64_t elements, double initial) {
  return {name, role, {DType::f32, Shape{elements}}, {}, initial};
}

TEST(States, of_a_role_lie_one_behind_the_other_in_one_flat_buffer) {
  const auto backend = std::move(*open_cpu());
  States states;
  const std::vector<StateSpec> specs = {
      spec("a", StateRole::parameter, 3, 1), spec("a.exp_avg", StateRole::moment, 3, 0),
      spec("b", StateRole::parameter, 100, 2), spec("b.exp_avg", StateRole::moment, 100, 0)};
  states.ensure(specs, *backend);
  const auto next = [&](const char* name) {
    return states.data(name) + aligned(states.spec(name).type.bytes());
  };
  EXPECT_EQ(next("a"), states.data("b"));
  EXPECT_EQ(next("b"), states.data("a.exp_avg"));
  EXPECT_EQ(next("a.exp_avg"), states.data("b.exp_avg"));
  EXPECT_EQ(backend->allocated(), 2 * (aligned(12) + aligned(400)));
  EXPECT_EQ(states.save("b").as<float>()[99], 2);
}

TEST(States, that_are_there_keep_their_place_and_value) {
  const auto backend = std::move(*open_cpu());
  States states;
  states.ensure(spec("a", StateRole::parameter, 3, 1), *backend);
  std::byte* const place = states.data("a");
  const std::vector<StateSpec> both = {spec("a", StateRole::parameter, 3, 7),
                                       spec("c", StateRole::counter, 1, 0)};
  states.ensure(both, *backend);
  EXPECT_EQ(states.data("a"), place);
  EXPECT_EQ(states.save("a").as<float>()[0], 1);
}

}  // namespace
}  // namespace halfwatt

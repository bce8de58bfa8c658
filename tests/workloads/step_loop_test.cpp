#include "workloads/step_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/failure.h"

namespace halfwatt {
namespace {

template <class Condition>
void wait_until(const Condition& holds) {
  SteadyClock clock;
  const Seconds end = clock.now() + Seconds(20);
  while (!holds() && clock.now() < end) {
    clock.sleep_until(clock.now() + Seconds(0.001));
  }
  ASSERT_TRUE(holds());
}

TEST(StepLoop, does_steps_until_it_is_stopped_and_knows_when_each_ended) {
  SteadyClock clock;
  StepLoop loop(clock);
  loop.start([] { return Result<NumericalState>(NumericalState::live); });
  wait_until([&] { return loop.reading().count >= 5; });
  loop.stop();
  const StepLoop::Reading done = loop.reading();
  EXPECT_EQ(done.state, NumericalState::live);
  EXPECT_EQ(done.at, done.ends.back());
  EXPECT_TRUE(std::is_sorted(done.ends.begin(), done.ends.end()));
  EXPECT_EQ(loop.reading().count, done.count) << "it went on";
}

TEST(StepLoop, goes_on_counting_when_it_begins_with_other_steps) {
  SteadyClock clock;
  StepLoop loop(clock);
  loop.start([] { return Result<NumericalState>(NumericalState::live); });
  wait_until([&] { return loop.reading().count >= 3; });
  loop.stop();
  const double before = loop.reading().count;
  loop.start([] { return Result<NumericalState>(NumericalState::dead); });
  wait_until([&] { return loop.reading().count > before; });
  EXPECT_EQ(loop.reading().state, NumericalState::dead);
}

TEST(StepLoop, ends_at_a_step_that_fails_and_tells_why) {
  SteadyClock clock;
  StepLoop loop(clock);
  loop.start([]() -> Result<NumericalState> { return bad_input("no more"); });
  wait_until([&] { return loop.reading().error.has_value(); });
  EXPECT_EQ(loop.reading().error->message, "no more");
  loop.start([]() -> Result<NumericalState> { throw Failure({ErrorKind::device, "lost"}); });
  wait_until([&] { return loop.reading().error.has_value(); });
  EXPECT_EQ(loop.reading().error->message, "lost");
  EXPECT_EQ(loop.reading().count, 0);
}

TEST(StepLoop, gives_up_what_a_step_owns) {
  SteadyClock clock;
  StepLoop loop(clock);
  const auto owned = std::make_shared<int>(0);
  loop.start([owned] { return Result<NumericalState>(NumericalState::live); });
  loop.release();
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(loop.reading().state, NumericalState::unknown);
}

}  // namespace
}  // namespace halfwatt

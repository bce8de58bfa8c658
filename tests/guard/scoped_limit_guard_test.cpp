#include "guard/scoped_limit_guard.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "guard/simulated_limit.h"

namespace halfwatt {
namespace {

const DeviceId kId{DeviceId::Kind::simulated, "card"};

/// A card whose limit is read and written by hand, and that remembers what was written.
class FakeLimit final : public LimitControl {
 public:
  Result<Watts> read() override {
    if (unreadable) {
      return Error{ErrorKind::device, "the limit cannot be read"};
    }
    return in_force;
  }
  Result<void> write(Watts limit) override {
    written.push_back(limit);
    if (refuses) {
      return Error{ErrorKind::device, "no permission"};
    }
    in_force = limit + rounding;
    return {};
  }

  Watts in_force{350};
  Watts rounding{0};
  bool unreadable = false;
  bool refuses = false;
  std::vector<Watts> written;
};

ScopedLimitGuard hold(LimitControl& control) {
  Result<ScopedLimitGuard> guard = ScopedLimitGuard::hold(control);
  EXPECT_TRUE(guard);
  return std::move(*guard);
}

using Writes = std::vector<Watts>;

TEST(ScopedLimitGuard, remembers_the_limit_that_it_found) {
  FakeLimit limit;
  ScopedLimitGuard guard = hold(limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  EXPECT_EQ(guard.found(), Watts(350));
}

TEST(ScopedLimitGuard, writes_nothing_where_nothing_was_set) {
  FakeLimit limit;
  {
    ScopedLimitGuard guard = hold(limit);
    EXPECT_TRUE(guard.restore());
  }
  EXPECT_EQ(limit.written, Writes{});
}

TEST(ScopedLimitGuard, returns_what_is_in_force_after_setting) {
  FakeLimit limit;
  limit.rounding = Watts(-0.25);
  ScopedLimitGuard guard = hold(limit);
  EXPECT_EQ(guard.set(Watts(200)).value(), Watts(199.75));
}

TEST(ScopedLimitGuard, puts_the_limit_back_at_the_end_of_its_scope) {
  FakeLimit limit;
  {
    ScopedLimitGuard guard = hold(limit);
    ASSERT_TRUE(guard.set(Watts(200)));
    ASSERT_TRUE(guard.set(Watts(250)));
  }
  EXPECT_EQ(limit.in_force, Watts(350));
  EXPECT_EQ(limit.written, (Writes{Watts(200), Watts(250), Watts(350)}));
}

TEST(ScopedLimitGuard, puts_the_limit_back_when_an_exception_passes) {
  FakeLimit limit;
  const auto throws_while_holding = [&limit] {
    ScopedLimitGuard guard = hold(limit);
    (void)guard.set(Watts(200));
    throw std::runtime_error("out of memory");
  };
  EXPECT_THROW(throws_while_holding(), std::runtime_error);
  EXPECT_EQ(limit.in_force, Watts(350));
}

TEST(ScopedLimitGuard, puts_the_limit_back_once_after_a_move) {
  FakeLimit limit;
  {
    std::optional<ScopedLimitGuard> last;
    {
      ScopedLimitGuard first = hold(limit);
      ASSERT_TRUE(first.set(Watts(200)));
      last.emplace(std::move(first));
    }
    EXPECT_EQ(limit.in_force, Watts(200));
    EXPECT_EQ(last->found(), Watts(350));
  }
  EXPECT_EQ(limit.written, (Writes{Watts(200), Watts(350)}));
}

TEST(ScopedLimitGuard, puts_the_limit_back_on_the_way_out_of_an_error) {
  FakeLimit limit;
  const auto fails_while_holding = [&limit]() -> Result<void> {
    ScopedLimitGuard guard = hold(limit);
    if (const Result<Watts> set = guard.set(Watts(200)); !set) {
      return set.error();
    }
    return Error{ErrorKind::workload, "the child died"};
  };
  EXPECT_EQ(fails_while_holding().error().message, "the child died");
  EXPECT_EQ(limit.in_force, Watts(350));
}

TEST(ScopedLimitGuard, puts_the_limit_back_once_when_asked_before_the_end) {
  FakeLimit limit;
  {
    ScopedLimitGuard guard = hold(limit);
    ASSERT_TRUE(guard.set(Watts(200)));
    EXPECT_TRUE(guard.restore());
    EXPECT_EQ(limit.in_force, Watts(350));
    EXPECT_TRUE(guard.restore());
  }
  EXPECT_EQ(limit.written, (Writes{Watts(200), Watts(350)}));
}

TEST(ScopedLimitGuard, puts_back_a_limit_that_somebody_else_set_meanwhile) {
  FakeLimit limit;
  ScopedLimitGuard guard = hold(limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  limit.in_force = Watts(300);
  EXPECT_TRUE(guard.restore());
  EXPECT_EQ(limit.in_force, Watts(350));
}

TEST(ScopedLimitGuard, takes_a_limit_for_put_back_that_the_card_rounds) {
  FakeLimit limit;
  limit.rounding = Watts(0.4);
  ScopedLimitGuard guard = hold(limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  EXPECT_TRUE(guard.restore());
}

TEST(ScopedLimitGuard, refuses_to_hold_a_limit_that_cannot_be_read) {
  FakeLimit limit;
  limit.unreadable = true;
  const auto guard = ScopedLimitGuard::hold(limit);
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().message, "the limit cannot be read");
  EXPECT_EQ(limit.written, Writes{});
}

TEST(ScopedLimitGuard, passes_on_why_a_limit_could_not_be_set) {
  FakeLimit limit;
  limit.refuses = true;
  ScopedLimitGuard guard = hold(limit);
  EXPECT_EQ(guard.set(Watts(200)).error().message, "no permission");
}

TEST(ScopedLimitGuard, has_nothing_to_report_where_no_limit_could_be_set_at_all) {
  FakeLimit limit;
  limit.refuses = true;
  testing::internal::CaptureStderr();
  {
    ScopedLimitGuard guard = hold(limit);
    ASSERT_FALSE(guard.set(Watts(200)));
    EXPECT_TRUE(guard.restore());  // the limit is the one that was found
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ScopedLimitGuard, reports_not_restored_where_the_card_cannot_be_read_any_more) {
  FakeLimit limit;
  ScopedLimitGuard guard = hold(limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  limit.unreadable = true;
  const auto result = guard.restore();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::not_restored);
  EXPECT_EQ(result.error().message,
            "the power limit could not be put back to 350 W: the limit cannot be read");
  limit.unreadable = false;
}

TEST(ScopedLimitGuard, says_on_stderr_that_it_failed_where_nobody_can_be_told) {
  FakeLimit limit;
  testing::internal::CaptureStderr();
  {
    ScopedLimitGuard guard = hold(limit);
    ASSERT_TRUE(guard.set(Watts(200)));
    limit.refuses = true;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "halfwatt: the power limit could not be put back to 350 W: no permission\n");
}

/// A simulated card that something happens to after 10 s.
struct FaultyCard {
  explicit FaultyCard(Fault::Kind kind)
      : card(kId, CardModel{}, clock, {Fault{kind, Seconds(10), Seconds(20), 0}}) {}

  VirtualClock clock;
  SimulatedCard card;
  SimulatedLimit limit{card};
};

TEST(ScopedLimitGuard, reports_not_restored_when_the_card_refuses) {
  FaultyCard faulty(Fault::Kind::set_refused);
  ScopedLimitGuard guard = hold(faulty.limit);
  ASSERT_EQ(guard.set(Watts(200)).value(), Watts(200));
  faulty.clock.sleep_until(Seconds(15));
  const auto result = guard.restore();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::not_restored);
  EXPECT_EQ(
      result.error().message,
      "the power limit could not be put back to 390 W: sim:card: no permission to set the "
      "power limit");
  faulty.clock.sleep_until(Seconds(20));  // a later attempt may succeed
  EXPECT_TRUE(guard.restore());
  EXPECT_EQ(faulty.card.limit(), Watts(390));
}

TEST(ScopedLimitGuard, reports_not_restored_when_the_card_only_claims_success) {
  FaultyCard faulty(Fault::Kind::set_ignored);
  ScopedLimitGuard guard = hold(faulty.limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  faulty.clock.sleep_until(Seconds(15));
  const auto result = guard.restore();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::not_restored);
  EXPECT_EQ(result.error().message,
            "the power limit could not be put back to 390 W: the card says 200 W");
  faulty.clock.sleep_until(Seconds(20));
}

TEST(ScopedLimitGuard, reports_not_restored_when_the_card_is_lost) {
  FaultyCard faulty(Fault::Kind::lost);
  ScopedLimitGuard guard = hold(faulty.limit);
  ASSERT_TRUE(guard.set(Watts(200)));
  faulty.clock.sleep_until(Seconds(15));
  const auto result = guard.restore();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::not_restored);
  faulty.clock.sleep_until(Seconds(20));
}

TEST(ScopedLimitGuard, cannot_hold_a_lost_card) {
  FaultyCard faulty(Fault::Kind::lost);
  faulty.clock.sleep_until(Seconds(15));
  EXPECT_EQ(ScopedLimitGuard::hold(faulty.limit).error().kind, ErrorKind::device);
}

}  // namespace
}  // namespace halfwatt

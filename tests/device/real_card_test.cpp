// What must hold on a real card, whatever card it is. It is only read. Without a driver these
// tests skip and say why.

#include <gtest/gtest.h>

#include "base/clock.h"
#include "device/devices.h"
#include "device/energy_check.h"
#include "device/nvml_card.h"

namespace halfwatt {
namespace {

class RealCard : public testing::Test {
 protected:
  void SetUp() override {
    auto library = NvmlLibrary::open("libnvidia-ml.so.1");
    if (!library) {
      GTEST_SKIP() << library.error().message;
    }
    const auto cards = (*library)->cards();
    if (!cards || cards->empty() || cards->front().uuid.empty()) {
      GTEST_SKIP() << "no card that may be read";
    }
    auto card = NvmlCard::open(*library, cards->front().uuid);
    ASSERT_TRUE(card) << card.error().message;
    card_ = std::move(*card);
  }

  std::unique_ptr<NvmlCard> card_;
};

TEST_F(RealCard, tells_power_and_limits_that_agree_with_each_other) {
  const Result<Sample> sample = card_->read();
  ASSERT_TRUE(sample) << sample.error().message;
  ASSERT_TRUE((*sample)[SignalId::power]);
  EXPECT_GT(*(*sample)[SignalId::power], 1);
  const auto& limits = card_->info().limits;
  ASSERT_TRUE(limits);
  EXPECT_LT(limits->min, limits->max);
  const auto& enforced = (*sample)[SignalId::enforced_limit];
  const auto& requested = (*sample)[SignalId::requested_limit];
  ASSERT_TRUE(enforced && requested);
  EXPECT_LE(*enforced, *requested);
  EXPECT_GE(*requested, limits->min.value());
  EXPECT_LE(*requested, limits->max.value());
}

TEST_F(RealCard, tells_the_same_quickly_and_slowly) {
  const Result<Sample> quick = card_->read_quickly();
  const Result<Sample> full = card_->read();
  ASSERT_TRUE(quick && full);
  for (const Signal& signal : kSignals) {
    if (signal.kind == SignalKind::counter && (*quick)[signal.id] && (*full)[signal.id]) {
      EXPECT_LE(*(*quick)[signal.id], *(*full)[signal.id]) << signal.name;
    }
    EXPECT_TRUE(!(*quick)[signal.id] || (*full)[signal.id]) << signal.name;
  }
}

TEST_F(RealCard, has_a_counter_whose_method_a_check_can_choose) {
  SteadyClock clock;
  const Result<EnergyJudgement> judged =
      check_energy(clock, *card_, EnergyCheckRules{}, [] { return false; });
  ASSERT_TRUE(judged) << judged.error().message;
  RecordProperty("method", std::string(text(judged->method)));
  EXPECT_NE(judged->method, EnergyMethod::none) << judged->why;
  EXPECT_TRUE(judged->checked);
  if (judged->method == EnergyMethod::counter) {
    ASSERT_TRUE(judged->tick);
    EXPECT_GT(*judged->tick, Seconds(0.005));
    EXPECT_LT(*judged->tick, Seconds(1));
  }
}

}  // namespace
}  // namespace halfwatt

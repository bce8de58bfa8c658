#include "progress/step_message.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace halfwatt {
namespace {

TEST(StepMessage, reads_what_it_writes) {
  const StepMessage message{45, 1440, 0.25, 3, Seconds(123.5)};
  EXPECT_EQ(text(message), "step=45 items=1440 loss=0.25 rank=3 at=123.500000000");
  const auto read = parse_step_message(text(message));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 45);
  EXPECT_EQ(read->items, 1440);
  EXPECT_EQ(read->loss, 0.25);
  EXPECT_EQ(read->rank, 3u);
  EXPECT_EQ(read->at, Seconds(123.5));
}

TEST(StepMessage, is_a_number_or_plus_one_in_a_shell) {
  EXPECT_EQ(parse_step_message("45\n")->step, 45);
  EXPECT_EQ(parse_step_message("+1")->step, std::nullopt);
  EXPECT_EQ(parse_step_message(" loss=0.5 45 ")->loss, 0.5);
}

TEST(StepMessage, tells_a_loss_that_is_not_finite) {
  EXPECT_TRUE(std::isnan(*parse_step_message("45 loss=nan")->loss));
  EXPECT_TRUE(std::isinf(*parse_step_message("45 loss=-inf")->loss));
}

TEST(StepMessage, is_nothing_else) {
  for (const char* line : {"", " ", "loss=1", "-1", "+2", "nan", "inf", "1e300", "45 46x",
                           "45 items=-1", "45 loss=", "45 loss=x", "45 rank=-1",
                           "45 rank=99999999999", "45 what=1", "step=", "=45", "45 at=nan"}) {
    EXPECT_FALSE(parse_step_message(line)) << line;
  }
  EXPECT_FALSE(parse_step_message("45 " + std::string(kMostBytesOfAStepMessage, ' ')));
}

TEST(StepMessage, survives_any_bytes) {
  Rng rng(3);
  const std::string_view words = "0123456789+-=. step items loss rank at nan inf\n\0\xff";
  for (int i = 0; i < 100000; ++i) {
    std::string line;
    for (auto left = rng.next() % 40; left > 0; --left) {
      line += words[rng.next() % words.size()];
    }
    if (const auto message = parse_step_message(line)) {
      ASSERT_TRUE(!message->step || (std::isfinite(*message->step) && *message->step >= 0));
      ASSERT_TRUE(parse_step_message(text(*message)));
    }
  }
}

}  // namespace
}  // namespace halfwatt

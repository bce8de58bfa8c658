#include "device/sampling.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

#include "device/simulated.h"

namespace halfwatt {
namespace {

StampedSample stamped(double at) { return {Seconds(at), {}}; }

TEST(SampleRing, keeps_the_newest_in_order) {
  SampleRing ring(3);
  EXPECT_EQ(ring.size(), 0U);
  for (int i = 1; i <= 5; ++i) {
    ring.push(stamped(i));
  }
  ASSERT_EQ(ring.size(), 3U);
  EXPECT_EQ(ring.capacity(), 3U);
  EXPECT_EQ(ring[0].at, Seconds(3));
  EXPECT_EQ(ring[2].at, Seconds(5));
}

/// How often each kind of reading fell due in `seconds`, at 10 Hz.
Due count(SamplingPlan& plan, double from, int rounds, int& full, int& energy) {
  Due last;
  for (int i = 0; i < rounds; ++i) {
    last = plan.due(Seconds(from + i * 0.1));
    full += last.full ? 1 : 0;
    energy += last.energy ? 1 : 0;
  }
  return last;
}

TEST(SamplingPlan, reads_everything_at_first_and_once_a_second_then) {
  SamplingPlan plan({}, 0);
  int full = 0;
  int energy = 0;
  count(plan, 0, 1, full, energy);
  EXPECT_EQ(full, 1);
  EXPECT_EQ(energy, 1);
  count(plan, 0.1, 100, full, energy);
  EXPECT_EQ(full, 11);
  EXPECT_EQ(energy, 11);
}

TEST(SamplingPlan, spreads_the_slow_readings_of_several_devices) {
  const SamplingRules rules;
  std::vector<SamplingPlan> plans;
  for (int i = 0; i < 8; ++i) {
    plans.emplace_back(rules, i / 8.0);
    plans.back().due(Seconds(0));
  }
  for (int round = 1; round < 200; ++round) {
    int at_once = 0;
    for (SamplingPlan& plan : plans) {
      at_once += plan.due(Seconds(round * 0.1)).energy ? 1 : 0;
    }
    EXPECT_LE(at_once, 2) << round;
  }
}

TEST(SamplingPlan, does_not_catch_up_after_a_pause) {
  SamplingPlan plan({}, 0);
  plan.due(Seconds(0));
  EXPECT_TRUE(plan.due(Seconds(3600)).energy);
  EXPECT_FALSE(plan.due(Seconds(3600.1)).energy);
  EXPECT_TRUE(plan.due(Seconds(3601)).energy);
}

TEST(SampleStore, gives_what_came_after_a_time) {
  SampleStore store(2, {}, Seconds(0));
  for (int i = 1; i <= 5; ++i) {
    store.add(1, stamped(i));
  }
  EXPECT_EQ(store.since(1, Seconds(3)).size(), 2U);
  EXPECT_EQ(store.since(1, Seconds(3)).front().at, Seconds(4));
  EXPECT_TRUE(store.since(0, Seconds(0)).empty());
  EXPECT_EQ(store.state(1, Seconds(5)).latest->at, Seconds(5));
}

TEST(SampleStore, says_since_when_a_device_is_stale_and_which_one_blocks) {
  SampleStore store(2, {}, Seconds(100));
  EXPECT_EQ(store.state(0, Seconds(100.5)).stale_since, std::nullopt);
  EXPECT_EQ(store.state(0, Seconds(102)).stale_since, Seconds(100));
  store.add(0, stamped(103));
  store.add(1, stamped(103));
  store.call_begins(0, Seconds(103.1));
  EXPECT_EQ(store.state(0, Seconds(103.5)).stale_since, std::nullopt);
  const SamplingState blocked = store.state(0, Seconds(110));
  EXPECT_EQ(blocked.stale_since, Seconds(103));
  EXPECT_TRUE(blocked.blocked);
  EXPECT_TRUE(store.state(1, Seconds(110)).stale_since);
  EXPECT_FALSE(store.state(1, Seconds(110)).blocked);
  store.add(0, stamped(111));
  EXPECT_EQ(store.state(0, Seconds(111.1)).stale_since, std::nullopt);
  EXPECT_FALSE(store.state(0, Seconds(111.1)).blocked);
}

TEST(SampleStore, says_that_a_device_is_lost_until_it_answers_again) {
  SampleStore store(1, {}, Seconds(0));
  store.fail(0, {ErrorKind::device, "lost"});
  ASSERT_TRUE(store.state(0, Seconds(0.1)).error);
  EXPECT_EQ(store.state(0, Seconds(0.1)).error->message, "lost");
  store.add(0, stamped(1));
  EXPECT_FALSE(store.state(0, Seconds(1)).error);
}

/// A device that counts what is asked of it; quick readings tell power alone.
class Asked final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override {
    ++full;
    Sample sample;
    sample[SignalId::power] = 100 + full;
    sample[SignalId::temperature] = 50 + full;
    return sample;
  }
  Result<Sample> read_quickly() override {
    ++quick;
    Sample sample;
    sample[SignalId::power] = 200 + quick;
    return sample;
  }
  std::optional<Joules> energy() override {
    ++energies;
    return Joules(energies);
  }
  int full = 0;
  int quick = 0;
  int energies = 0;

 private:
  DeviceInfo info_;
};

TEST(Sampling, keeps_the_last_full_value_of_what_a_quick_reading_does_not_tell) {
  VirtualClock clock;
  Asked device;
  const SamplingRules rules;
  SampleStore store(1, rules, clock.now());
  Sampling sampling(device, rules, 0);
  for (int i = 0; i < 25; ++i) {
    clock.sleep_until(Seconds(i * 0.1));
    sampling.round(clock, store, 0);
  }
  EXPECT_EQ(device.full, 3);
  EXPECT_EQ(device.quick, 22);
  EXPECT_EQ(device.energies, 3);
  const auto samples = store.since(0, Seconds(-1));
  ASSERT_EQ(samples.size(), 25U);
  EXPECT_EQ(samples[0].sample[SignalId::temperature], 51);
  EXPECT_EQ(samples[9].sample[SignalId::temperature], 51);
  EXPECT_EQ(samples[9].sample[SignalId::power], 209);
  EXPECT_EQ(samples[10].sample[SignalId::temperature], 52);
  EXPECT_EQ(samples[10].sample[SignalId::energy], 2);
  EXPECT_EQ(samples[11].sample[SignalId::energy], std::nullopt);
}

TEST(Sampling, needs_no_more_memory_after_an_hour_than_after_a_minute) {
  VirtualClock clock;
  const SamplingRules rules;
  std::vector<std::unique_ptr<SimulatedCard>> cards;
  std::vector<Sampling> samplings;
  for (int i = 0; i < 8; ++i) {
    cards.push_back(std::make_unique<SimulatedCard>(
        DeviceId{DeviceId::Kind::simulated, std::to_string(i)}, CardModel{}, clock));
    cards.back()->set_demand(Watts(300));
    samplings.emplace_back(*cards.back(), rules, i / 8.0);
  }
  SampleStore store(cards.size(), rules, clock.now());
  const auto run_until = [&](int tenths, int end) {
    for (; tenths < end; ++tenths) {
      clock.sleep_until(Seconds(tenths * 0.1));
      for (std::size_t i = 0; i < samplings.size(); ++i) {
        samplings[i].round(clock, store, i);
      }
    }
  };
  run_until(0, 600);
  const auto after_a_minute = ::mallinfo2().uordblks;
  run_until(600, 36000);
  EXPECT_EQ(::mallinfo2().uordblks, after_a_minute);
  EXPECT_EQ(store.since(7, Seconds(-1)).size(), rules.kept);
  EXPECT_NEAR(store.state(7, clock.now()).latest->at.value(), 3599.9, 1e-6);
}

}  // namespace
}  // namespace halfwatt

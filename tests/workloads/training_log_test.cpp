#include "workloads/training_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

/// A meter that reads what a test says.
class MadeMeter final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override { return Sample{}; }
  std::optional<Joules> energy() override { return reads; }

  std::optional<Joules> reads = Joules(1000);

 private:
  DeviceInfo info_;
};

StepEvent step(std::int64_t attempt, double seconds = 2) {
  StepEvent event;
  event.report.attempt = attempt;
  event.images = 10;
  event.took = Seconds(seconds);
  event.waited = Seconds(seconds / 4);
  return event;
}

std::vector<Json> speed(const Folder& folder) {
  std::vector<Json> lines;
  std::ifstream file(folder.path("speed.jsonl"));
  for (std::string line; std::getline(file, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

TEST(TrainingLog, tells_watts_and_joules_of_the_images_where_there_is_a_meter) {
  const Folder folder;
  MadeMeter meter;
  auto log = TrainingLog::open(folder.path(""), 0, &meter);
  ASSERT_TRUE(log) << log.error().message;
  meter.reads = Joules(1100);
  const StepCost cost = log->add(step(1));
  EXPECT_DOUBLE_EQ(cost.images_per_second.value(), 5);
  EXPECT_DOUBLE_EQ(cost.waited_share.value(), 0.25);
  EXPECT_DOUBLE_EQ(cost.power->value(), 50);
  EXPECT_DOUBLE_EQ(cost.per_image->value(), 10);
  EXPECT_EQ(speed(folder)[0]["joules"], 100.0);
}

TEST(TrainingLog, says_nothing_of_watts_where_no_meter_is_and_never_0) {
  const Folder folder;
  auto log = TrainingLog::open(folder.path(""), 0, nullptr);
  ASSERT_TRUE(log);
  const StepCost cost = log->add(step(1));
  EXPECT_FALSE(cost.power);
  EXPECT_FALSE(cost.per_image);
  EXPECT_EQ(speed(folder)[0]["joules"], nullptr);
}

TEST(TrainingLog, says_nothing_of_a_step_whose_energy_the_meter_cannot_tell) {
  const Folder folder;
  MadeMeter meter;
  meter.reads = std::nullopt;
  auto log = TrainingLog::open(folder.path(""), 0, &meter);
  ASSERT_TRUE(log);
  meter.reads = Joules(1000);
  EXPECT_FALSE(log->add(step(1)).power) << "nobody knows what it read before";
  meter.reads = Joules(1100);
  EXPECT_DOUBLE_EQ(log->add(step(2)).power->value(), 50);
  meter.reads = std::nullopt;
  EXPECT_FALSE(log->add(step(3)).power);
}

TEST(TrainingLog, does_not_add_the_energy_of_an_evaluation_to_the_step_behind_it) {
  const Folder folder;
  MadeMeter meter;
  auto log = TrainingLog::open(folder.path(""), 0, &meter);
  ASSERT_TRUE(log);
  meter.reads = Joules(5000);
  log->add(EvaluationEvent{});
  meter.reads = Joules(5100);
  EXPECT_DOUBLE_EQ(log->add(step(1)).power->value(), 50);
}

TEST(TrainingLog, evens_out_the_speed_of_steps_and_writes_down_each) {
  const Folder folder;
  auto log = TrainingLog::open(folder.path(""), 0, nullptr);
  ASSERT_TRUE(log);
  StepCost cost;
  for (std::int64_t attempt = 1; attempt <= 200; ++attempt) {
    cost = log->add(step(attempt, attempt % 2 == 0 ? 1 : 3));
  }
  EXPECT_NEAR(cost.images_per_second.value(), 5, 0.3);
  EXPECT_EQ(speed(folder)[198]["seconds"], 3.0);
  EXPECT_EQ(speed(folder)[199]["seconds"], 1.0);
}

}  // namespace
}  // namespace halfwatt

// Steps whose reports come late, as those of a GPU do; here of a processor that says of no run
// that it is done before it is waited for.

#include <gtest/gtest.h>

#include "engine/formats/folder.h"
#include "engine/train/fit.h"
#include "engine/train/small_training.h"
#include "support/forwarding_backend.h"

namespace halfwatt {
namespace {

class LateSnapshots final : public Snapshots {
 public:
  explicit LateSnapshots(std::unique_ptr<Snapshots> real) : real_(std::move(real)) {}
  void take() override { real_->take(); }
  bool is_there() override { return false; }
  std::span<const std::byte> oldest() override { return real_->oldest(); }
  void drop_oldest() override { real_->drop_oldest(); }

 private:
  std::unique_ptr<Snapshots> real_;
};

class LateBackend final : public ForwardingBackend {
 public:
  LateBackend() : ForwardingBackend(std::move(*open_cpu())) {}
  std::unique_ptr<Snapshots> snapshots(const std::byte* from, std::size_t bytes) override {
    return std::make_unique<LateSnapshots>(ForwardingBackend::snapshots(from, bytes));
  }
};

TEST(LateReports, come_in_order_and_are_those_of_steps_that_are_waited_for) {
  for (const int micro_batches : {1, 3}) {
    TrainRecipe recipe = small_recipe("amp-fp16");
    recipe.micro_batches = micro_batches;
    const ImageSet images = digits();
    SmallTraining waiting(recipe);
    waiting.steps(images, 0, 5);
    LateBackend backend;
    const auto trainer = std::move(*Trainer::open(recipe, backend));
    const std::int64_t size = trainer->step_size();
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(trainer->start(some(images, step * size, size)));
    }
    EXPECT_EQ(trainer->attempts(), 5);
    EXPECT_EQ(trainer->reports_due(), 5U);
    for (int step = 0; step < 5; ++step) {
      const auto report = trainer->report();
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->attempt, step + 1);
      EXPECT_EQ(report->loss, waiting.losses[static_cast<std::size_t>(step)]);
    }
    EXPECT_EQ(trainer->reports_due(), 0U);
    EXPECT_FALSE(*trainer->report_if_done());
    EXPECT_EQ(differing(*waiting.trainer, *trainer), "");
  }
}

TEST(LateReports, are_settled_before_a_checkpoint_and_are_still_there_after_it) {
  const Folder folder;
  TrainRecipe recipe = small_recipe("amp-fp16");
  recipe.micro_batches = 3;
  const ImageSet images = digits();
  SmallTraining waiting(recipe);
  waiting.steps(images, 0, 2);
  ASSERT_TRUE(waiting.trainer->micro_step(some(images, 96, 16)));
  ASSERT_TRUE(waiting.trainer->save(folder.path("waiting"), {0, 112, {}}));
  LateBackend backend;
  const auto trainer = std::move(*Trainer::open(recipe, backend));
  ASSERT_TRUE(trainer->start(some(images, 0, 48)));
  ASSERT_TRUE(trainer->start(some(images, 48, 48)));
  ASSERT_TRUE(trainer->micro_step(some(images, 96, 16)));
  ASSERT_TRUE(trainer->save(folder.path("late"), {0, 112, {}}));
  EXPECT_EQ(read_file(folder.path("late")), read_file(folder.path("waiting")));
  EXPECT_EQ(trainer->reports_due(), 2U);
  EXPECT_EQ(trainer->report()->loss, waiting.losses[0]);
}

class LateFit : public testing::Test {
 protected:
  LateFit() {
    recipe_ = small_recipe("amp-bf16");
    recipe_.model.channels = 3;
    data_.train = source_.get();
    data_.held_out = source_.get();
    data_.preprocessing.size = recipe_.model.image;
  }

  std::unique_ptr<Source> source_ = std::move(*open_synthetic({80, 10, 8, 0}));
  TrainRecipe recipe_;
  FitData data_;
};

TEST_F(LateFit, tells_of_every_step_in_order_before_its_evaluation_and_its_checkpoint) {
  const Folder files;
  LateBackend backend;
  const auto trainer = std::move(*Trainer::open(recipe_, backend));
  auto folder = *CheckpointFolder::open(files.path("run"), {3, 100});
  std::vector<std::string> told;
  FitObserver observer;
  observer.on_step = [&](const StepEvent& event) {
    told.push_back("step " + std::to_string(event.report.attempt));
    EXPECT_GE(event.took.value(), 0);
  };
  observer.on_evaluation = [&](const EvaluationEvent& event) {
    told.push_back("evaluation after " + std::to_string(event.attempt));
  };
  std::size_t behind = 0;
  observer.wish = [&] {
    behind = std::max(behind, trainer->reports_due());
    return Wish::go_on;
  };
  ASSERT_TRUE(fit(*trainer, data_, 2, {}, folder, observer));
  EXPECT_EQ(told, (std::vector<std::string>{"step 1", "step 2", "step 3", "step 4", "step 5",
                                            "evaluation after 5", "step 6", "step 7", "step 8",
                                            "step 9", "step 10", "evaluation after 10"}));
  EXPECT_EQ(behind, 2U);
}

}  // namespace
}  // namespace halfwatt

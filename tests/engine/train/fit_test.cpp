// Whole trainings on pictures: from bytes that the device normalises, and from numbers.

#include "engine/train/fit.h"

#include <gtest/gtest.h>

#include "engine/formats/folder.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

/// Pictures as they were drawn, each of another size, so that views have borders and parts.
class Drawn final : public Source {
 public:
  std::int64_t size() const override { return 40; }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override { return place % 10; }
  std::string name(std::int64_t place) const override { return std::to_string(place); }
  Result<Image> read(std::int64_t place) const override {
    Image image{7 + place % 5, 6 + place % 3, {}};
    Rng rng(static_cast<std::uint64_t>(place));
    for (std::int64_t at = 0; at < image.width * image.height * 3; ++at) {
      image.pixels.push_back(static_cast<std::uint8_t>(rng.next()));
    }
    return image;
  }

 private:
  ClassMap classes_ = ClassMap::numbered(10);
};

class FitTest : public testing::Test {
 protected:
  FitTest() {
    data_.train = data_.held_out = &pictures_;
    data_.preprocessing.size = 8;
    data_.preprocessing.crop = 1.5;  // a view of the evaluation has black borders
    data_.threads = 2;
  }

  TrainRecipe recipe(std::string_view mode, bool from_bytes) const {
    TrainRecipe how = small_recipe(mode);
    how.model.channels = 3;
    how.model.drop_path = 0.1;
    how.optimizer.average = 0.9;
    if (from_bytes) {
      how.normalisation = data_.preprocessing.normalisation;
    }
    return how;
  }

  /// Trains until `epochs` are done, from where the folder's last checkpoint is, if any; notes
  /// what it was told.
  void train(SmallTraining& training, std::int64_t epochs, const std::string& folder_name) {
    auto folder = CheckpointFolder::open(root_.path(folder_name), {});
    ASSERT_TRUE(folder) << folder.error().message;
    TrainPosition from;
    if (const auto last = folder->last()) {
      const auto resumed = training.trainer->restore(*last);
      ASSERT_TRUE(resumed) << resumed.error().message;
      from = resumed->position;
    }
    const FitObserver observer{
        [&](const StepEvent& event) { training.losses.push_back(event.report.loss); },
        [&](const EvaluationEvent& event) {
          training.losses.push_back(event.evaluation.loss);
          EXPECT_EQ(event.evaluation.images, pictures_.size());
        },
        {}};
    const auto end = fit(*training.trainer, data_, epochs, from, *folder, observer);
    ASSERT_TRUE(end) << end.error().message;
  }

  const Folder root_;
  const Drawn pictures_;
  FitData data_;
};

TEST_F(FitTest, learns_from_bytes_to_the_bits_of_a_training_from_numbers) {
  for (const bool augments : {true, false}) {
    data_.augments = augments;
    for (const std::string mode : {"fp32", "amp-bf16", "bf16", "O2", "fp64"}) {
      SCOPED_TRACE(mode + (augments ? " augmented" : ""));
      const std::string folder = mode + (augments ? "-a" : "");
      SmallTraining from_numbers(recipe(mode, false));
      SmallTraining from_bytes(recipe(mode, true));
      train(from_numbers, 2, folder + "-numbers");
      train(from_bytes, 2, folder + "-bytes");
      EXPECT_EQ(from_bytes.losses.size(), 6U) << "two steps and an evaluation, twice";
      EXPECT_EQ(from_bytes.losses, from_numbers.losses);
      EXPECT_EQ(differing(*from_bytes.trainer, *from_numbers.trainer), "");
    }
  }
}

TEST(SmallTraining, has_the_same_bits_of_bytes_as_of_their_numbers_in_micro_batches) {
  const Normalisation by = kImagenetNormalisation;
  const SmallPictures pictures(100, by);
  for (const std::string_view mode : {"fp32", "tf32", "amp-fp16", "fp8-delayed", "bf16-sr"}) {
    TrainRecipe how = small_recipe(mode);
    how.model.channels = 3;
    how.micro_batches = 2;
    SmallTraining from_numbers(how);
    from_numbers.steps(pictures.numbers, 0, 4);
    how.normalisation = by;
    SmallTraining from_bytes(how);
    from_bytes.steps(pictures.bytes, 0, 4);
    EXPECT_EQ(from_bytes.losses, from_numbers.losses) << mode;
    EXPECT_EQ(differing(*from_bytes.trainer, *from_numbers.trainer), "") << mode;
    EXPECT_EQ(from_bytes.trainer->evaluate(pictures.bytes)->loss,
              from_numbers.trainer->evaluate(pictures.numbers)->loss)
        << mode;
  }
}

TEST_F(FitTest, goes_on_from_bytes_where_a_training_from_numbers_stopped) {
  SmallTraining whole(recipe("fp32", true));
  train(whole, 2, "whole");
  SmallTraining begun(recipe("fp32", false));
  train(begun, 1, "parts");
  SmallTraining ended(recipe("fp32", true));
  train(ended, 2, "parts");
  EXPECT_EQ(differing(*ended.trainer, *whole.trainer), "");
}

}  // namespace
}  // namespace halfwatt

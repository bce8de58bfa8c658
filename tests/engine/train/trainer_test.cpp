#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include "engine/backend/cpu/cpu_backend.h"

namespace halfwatt {
namespace {

ImageSet digits() {
  auto set = read_pixel_csv("data/digits.csv.gz", {});
  EXPECT_TRUE(set) << set.error().message;
  return std::move(*set);
}

TrainRecipe recipe(std::string_view mode) {
  TrainRecipe all;
  all.model = *vit_named("vit_micro_patch2_8");
  all.model.channels = 1;
  all.model.classes = 10;
  all.precision = *precision_named(mode);
  all.batch = 16;
  return all;
}

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> places;
  for (std::int64_t at = 0; at < count; ++at) {
    places.push_back(at);
  }
  return places;
}

class TrainerTest : public testing::Test {
 protected:
  std::unique_ptr<Trainer> open(const TrainRecipe& recipe) {
    auto trainer = Trainer::open(recipe, *backend_);
    EXPECT_TRUE(trainer) << trainer.error().message;
    return std::move(*trainer);
  }

  std::unique_ptr<Backend> backend_ = std::move(*open_cpu());
  ImageSet digits_ = digits();
};

TEST_F(TrainerTest, learns_a_batch_by_heart) {
  TrainRecipe how = recipe("amp-bf16");
  how.optimizer.rate = 3e-3;
  const auto trainer = open(how);
  const ImageSet batch = digits_.at(first(16));
  StepReport last;
  for (int step = 0; step < 120; ++step) {
    last = *trainer->step(batch);
  }
  EXPECT_LT(last.loss, 0.1);
  EXPECT_EQ(last.state, NumericalState::live);
  EXPECT_EQ(trainer->evaluate(batch)->right, 16);
}

TEST_F(TrainerTest, counts_every_image_once_whatever_their_number) {
  const auto trainer = open(recipe("fp32"));
  for (const std::int64_t count : {1, 15, 16, 17, 100}) {
    const auto evaluation = trainer->evaluate(digits_.at(first(count)));
    ASSERT_TRUE(evaluation);
    EXPECT_EQ(evaluation->images, count);
    EXPECT_LE(evaluation->right, count);
  }
}

TEST_F(TrainerTest, ends_where_it_ends_with_the_blocks_computed_twice) {
  TrainRecipe how = recipe("amp-bf16");
  how.model.drop_path = 0.2;
  const auto plain = open(how);
  how.recompute = true;
  const auto twice = open(how);
  const ImageSet batch = digits_.at(first(16));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(plain->step(batch)->loss, twice->step(batch)->loss);
  }
  for (const std::string& name : plain->states().names()) {
    const Tensor one = plain->states().save(name);
    const Tensor other = twice->states().save(name);
    EXPECT_TRUE(std::equal(one.view().bytes().begin(), one.view().bytes().end(),
                           other.view().bytes().begin()))
        << name;
  }
}

TEST_F(TrainerTest, refuses_images_that_its_model_does_not_take) {
  const auto trainer = open(recipe("fp32"));
  const auto expect_refused = [&](const ImageSet& images, const std::string& says) {
    const auto stepped = trainer->step(images);
    ASSERT_FALSE(stepped) << says;
    EXPECT_EQ(stepped.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(stepped.error().message, says);
    const auto evaluated = trainer->evaluate(images);
    ASSERT_FALSE(evaluated) << says;
    EXPECT_EQ(evaluated.error().message, says);
  };
  ImageSet bad = digits_.at(first(16));
  bad.images = Tensor({DType::f32, Shape{16, 1, 8, 4}});
  expect_refused(bad,
                 "images: f32 16x1x8x4; vit_micro_patch2_8 needs f32 Nx1x8x8 of one image "
                 "or more");
  bad.images = Tensor({DType::f32, Shape{16, 64}});
  expect_refused(
      bad, "images: f32 16x64; vit_micro_patch2_8 needs f32 Nx1x8x8 of one image or more");
  bad = digits_.at(first(16));
  bad.labels.pop_back();
  expect_refused(bad, "images: 16, and 15 labels");
  bad = digits_.at(first(16));
  bad.classes = 11;
  expect_refused(bad, "labels: of 11 classes; vit_micro_patch2_8 tells 10 apart");
  const auto fewer = trainer->step(digits_.at(first(15)));
  ASSERT_FALSE(fewer);
  EXPECT_EQ(fewer.error().message, "images: 15 of them; a step takes 16");
  EXPECT_EQ(trainer->step(digits_.at(first(16)))->attempt, 1) << "nothing was done before";
}

TEST_F(TrainerTest, that_normalises_takes_bytes_and_nothing_else) {
  TrainRecipe how = recipe("fp32");
  how.model.channels = 3;
  how.normalisation = Normalisation{{0, 0, 0}, {1, 1, 1}};
  const auto trainer = open(how);
  ImageSet images = digits_.at(first(16));
  images.images = Tensor({DType::f32, Shape{16, 3, 8, 8}});
  const auto refused = trainer->step(images);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "images: f32 16x3x8x8; vit_micro_patch2_8 needs u8 Nx3x8x8 of one image or more");
  images.images = Tensor({DType::u8, Shape{16, 3, 8, 8}});
  EXPECT_TRUE(trainer->step(images));
}

TEST_F(TrainerTest, refuses_a_pattern_that_matches_no_layer) {
  TrainRecipe how = recipe("bf16");
  how.overrides = {*precision_override("blocks.7.*=fp32")};
  const auto refused = Trainer::open(how, *backend_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("blocks.7.*"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

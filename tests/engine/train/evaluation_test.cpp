#include "engine/train/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

using Logits = std::vector<double>;

TEST(Evaluation, counts_the_largest_the_five_largest_and_what_was_taken_for_what) {
  Evaluation evaluation;
  const Logits logits = {0, 6, 5, 4, 3, 2, 1};
  evaluation.count(logits, 1);  // the first
  evaluation.count(logits, 5);  // the fifth
  evaluation.count(logits, 6);  // the sixth
  EXPECT_EQ(evaluation.images, 3);
  EXPECT_EQ(evaluation.right, 1);
  EXPECT_EQ(evaluation.right_of_5, 2);
  EXPECT_EQ(evaluation.classes, 7);
  EXPECT_EQ(evaluation.taken_for(1, 1), 1);
  EXPECT_EQ(evaluation.taken_for(5, 1), 1);
  EXPECT_EQ(evaluation.taken_for(6, 1), 1);
  EXPECT_EQ(std::accumulate(evaluation.confusion.begin(), evaluation.confusion.end(),
                            std::int64_t{0}),
            3);
}

TEST(Evaluation, takes_the_first_of_equal_logits) {
  Evaluation evaluation;
  const Logits equal(7, 1.0);
  for (std::int64_t label = 0; label < 7; ++label) {
    evaluation.count(equal, label);
  }
  EXPECT_EQ(evaluation.right, 1);
  EXPECT_EQ(evaluation.right_of_5, 5);
  EXPECT_EQ(evaluation.taken_for(6, 0), 1);
}

TEST(Evaluation, takes_a_number_that_is_none_for_the_largest_as_PyTorch_does) {
  Evaluation evaluation;
  evaluation.count(Logits{3, NAN, INFINITY}, 2);
  EXPECT_EQ(evaluation.right, 0);
  EXPECT_EQ(evaluation.taken_for(2, 1), 1);
  evaluation.count(Logits{NAN, NAN, 1}, 0);
  EXPECT_EQ(evaluation.right, 1);
}

TEST(Evaluation, tells_two_classes_apart_by_one_logit) {
  Evaluation evaluation;
  evaluation.count(Logits{0.5}, 1);
  evaluation.count(Logits{-0.5}, 0);
  evaluation.count(Logits{0}, 1);
  evaluation.count(Logits{2}, 0);
  EXPECT_EQ(evaluation.classes, 2);
  EXPECT_EQ(evaluation.right, 2);
  EXPECT_EQ(evaluation.right_of_5, 4);
  EXPECT_EQ(evaluation.confusion, (std::vector<std::int64_t>{1, 1, 1, 1}));
}

TEST(Evaluation, of_parts_is_that_of_all) {
  Evaluation one;
  one.count(Logits{1, 0}, 0);
  one.loss = 2;
  Evaluation other;
  other.count(Logits{1, 0}, 1);
  other.count(Logits{0, 1}, 1);
  other.loss = 5;
  Evaluation sum;
  sum.add(one);
  sum.add({});
  sum.add(other);
  EXPECT_EQ(sum.images, 3);
  EXPECT_EQ(sum.right, 2);
  EXPECT_DOUBLE_EQ(sum.loss, 4);
  EXPECT_EQ(sum.confusion, (std::vector<std::int64_t>{1, 0, 1, 1}));
}

// Over batches that are not full.
TEST(Evaluation, of_a_model_counts_every_image_under_its_label) {
  const ImageSet images = some(digits(), 0, 100);
  SmallTraining training(small_recipe("fp32"));
  training.steps(images, 0, 6);
  const auto evaluation = training.trainer->evaluate(images);
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  std::int64_t sum = 0;
  std::int64_t trace = 0;
  for (std::int64_t label = 0; label < 10; ++label) {
    std::int64_t of_label = 0;
    for (std::int64_t answer = 0; answer < 10; ++answer) {
      of_label += evaluation->taken_for(label, answer);
    }
    EXPECT_EQ(of_label, std::count(images.labels.begin(), images.labels.end(), label));
    sum += of_label;
    trace += evaluation->taken_for(label, label);
  }
  EXPECT_EQ(sum, 100);
  EXPECT_EQ(trace, evaluation->right);
  EXPECT_GE(evaluation->right_of_5, evaluation->right);
  Evaluation parts;
  for (const std::int64_t first : {0, 7, 40}) {
    const std::int64_t end = first == 0 ? 7 : first == 7 ? 40 : 100;
    parts.add(*training.trainer->evaluate(some(images, first, end - first)));
  }
  EXPECT_EQ(parts.confusion, evaluation->confusion);
  EXPECT_EQ(parts.right_of_5, evaluation->right_of_5);
  EXPECT_NEAR(parts.loss, evaluation->loss, 1e-6);
}

}  // namespace
}  // namespace halfwatt

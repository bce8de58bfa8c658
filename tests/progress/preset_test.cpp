#include "progress/preset.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

std::string loss_in(const std::string& line) {
  const Preset automatic = *preset("auto");
  const auto match = automatic.losses.front().match(line, true);
  return match ? std::string(*match->loss) : "";
}

TEST(Preset, is_one_of_a_list) {
  const auto unknown = preset("keras");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message,
            "--progress keras: no preset; there are auto, tqdm, hf-trainer, lightning");
}

TEST(Preset, finds_the_loss_of_the_training_in_many_spellings) {
  EXPECT_EQ(loss_in("iter 5: loss 2.1, loss=2.0345e-1"), "2.0345e-1");
  EXPECT_EQ(loss_in("{'loss': '0.25', 'lr': 1}"), "0.25");
  EXPECT_EQ(loss_in("{\"train_loss\": -.5}"), "-.5");
  EXPECT_EQ(loss_in("Loss: tensor(1.5, grad_fn=<X>)"), "1.5");
  EXPECT_EQ(loss_in("[00:01<00:02, 41it/s, loss=nan]"), "nan");
  EXPECT_EQ(loss_in("loss=-Inf"), "-Inf");
  EXPECT_EQ(loss_in("train/loss: 3"), "3");
}

TEST(Preset, takes_no_other_loss_for_it) {
  EXPECT_EQ(loss_in("val_loss=0.3, eval_loss=0.2, train_loss_epoch=0.1"), "");
  EXPECT_EQ(loss_in("lossless: 5"), "");
}

TEST(Preset, knows_what_is_beside_the_training) {
  for (const char* label :
       {"Validation DataLoader 0:", "val", "Val 3", "Map (num_proc=4)",
        "Loading checkpoint shards", "Sanity Checking DataLoader 0", "Evaluating", "test"}) {
    EXPECT_TRUE(is_aside(label)) << label;
  }
  for (const char* label : {"", "train", "Epoch 5", "value iteration", "steps", "mapping"}) {
    EXPECT_FALSE(is_aside(label)) << label;
  }
  EXPECT_TRUE(counts_bytes("3.1MB/s"));
  EXPECT_FALSE(counts_bytes("3.1it/s"));
}

}  // namespace
}  // namespace halfwatt

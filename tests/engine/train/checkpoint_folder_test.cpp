#include "engine/train/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/formats/folder.h"
#include "engine/train/cut_log.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

CheckpointFolder opened(const fs::path& path, const CheckpointFolder::Rule& rule = {}) {
  auto folder = CheckpointFolder::open(path, rule);
  EXPECT_TRUE(folder) << folder.error().message;
  return std::move(*folder);
}

class CheckpointFolderTest : public testing::Test {
 protected:
  // One more step, and a checkpoint after it.
  void step_and_save(CheckpointFolder& folder, std::optional<double> score = {}) {
    const auto step = static_cast<int>(training_.trainer->attempts());
    training_.steps(images_, step, step + 1);
    const auto saved = folder.save(*training_.trainer, {0, 16 * (step + 1), score});
    ASSERT_TRUE(saved) << saved.error().message;
  }
  fs::path path() const { return root_.path("run"); }
  fs::path at(std::string_view name) const { return path() / name; }

  const Folder root_;
  ImageSet images_ = digits();
  SmallTraining training_{small_recipe("fp32")};
};

TEST_F(CheckpointFolderTest, keeps_the_latest_and_the_best_and_links_to_both) {
  CheckpointFolder folder = opened(path(), {.every = 0, .keep = 2});
  EXPECT_FALSE(folder.last());
  EXPECT_FALSE(folder.best());
  for (const double score : {0.5, 0.9, 0.7, 0.8, 0.9}) {
    step_and_save(folder, score);
  }
  EXPECT_EQ(names_in(path()),
            (std::vector<std::string>{"best.safetensors", "last.safetensors",
                                      "step-00000002.safetensors", "step-00000004.safetensors",
                                      "step-00000005.safetensors"}));
  EXPECT_EQ(folder.last(), at("step-00000005.safetensors"));
  EXPECT_EQ(folder.best(), at("step-00000002.safetensors"));
  EXPECT_EQ(folder.best_score(), 0.9) << "an equal one is no better";
  EXPECT_TRUE(training_.trainer->restore(at("last.safetensors")));
  EXPECT_EQ(training_.trainer->attempts(), 5);
  EXPECT_TRUE(training_.trainer->restore(at("best.safetensors")));
  EXPECT_EQ(training_.trainer->attempts(), 2);
}

TEST_F(CheckpointFolderTest, knows_the_best_score_when_it_is_opened_again) {
  {
    CheckpointFolder folder = opened(path());
    step_and_save(folder, 0.75);
    ASSERT_TRUE(folder.save(*training_.trainer, {0, 16, {}})) << "once more, without a score";
    step_and_save(folder, NAN);
  }
  CheckpointFolder folder = opened(path());
  EXPECT_EQ(folder.best_score(), 0.75);
  EXPECT_EQ(folder.best(), at("step-00000001.safetensors"));
  step_and_save(folder, 0.74);
  EXPECT_EQ(folder.best(), at("step-00000001.safetensors"));
  step_and_save(folder, 0.76);
  EXPECT_EQ(folder.best(), at("step-00000004.safetensors"));
  EXPECT_FALSE(fs::exists(at("step-00000001.safetensors"))) << "neither last nor best";
}

TEST_F(CheckpointFolderTest, is_due_every_so_many_steps) {
  const CheckpointFolder folder = opened(path(), {.every = 3, .keep = 1});
  EXPECT_FALSE(folder.is_due(0));
  EXPECT_FALSE(folder.is_due(2));
  EXPECT_TRUE(folder.is_due(3));
  EXPECT_TRUE(folder.is_due(6));
  const CheckpointFolder other = opened(root_.path("other"));
  EXPECT_FALSE(other.is_due(3));
}

TEST_F(CheckpointFolderTest, leaves_later_checkpoints_of_a_life_that_it_does_not_go_on_from) {
  CheckpointFolder folder = opened(path(), {.every = 0, .keep = 4});
  for (int step = 0; step < 4; ++step) {
    step_and_save(folder);
  }
  ASSERT_TRUE(training_.trainer->restore(at("step-00000001.safetensors")));
  step_and_save(folder);
  EXPECT_EQ(folder.last(), at("step-00000002.safetensors"));
  EXPECT_TRUE(fs::exists(at("step-00000004.safetensors")));
}

TEST_F(CheckpointFolderTest, finds_the_first_checkpoint_of_a_save_killed_before_its_link) {
  CheckpointFolder folder = opened(path());
  step_and_save(folder);
  fs::remove(at("last.safetensors"));
  EXPECT_EQ(folder.last(), at("step-00000001.safetensors"));
}

TEST_F(CheckpointFolderTest, sweeps_away_what_a_killed_save_left) {
  fs::create_directories(path());
  std::ofstream(at(".halfwatt-1-0.new")) << "half a checkpoint";
  std::ofstream(at("notes.txt")) << "the user's";
  const CheckpointFolder folder = opened(path());
  EXPECT_EQ(names_in(path()), std::vector<std::string>{"notes.txt"});
  EXPECT_FALSE(folder.last());
}

TEST_F(CheckpointFolderTest, is_of_one_training_at_a_time) {
  {
    const CheckpointFolder folder = opened(path());
    const auto second = CheckpointFolder::open(path(), {});
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another training saves its checkpoints there"),
              std::string::npos);
  }
  EXPECT_TRUE(CheckpointFolder::open(path(), {}));
}

TEST_F(CheckpointFolderTest, that_cannot_be_made_is_refused_in_one_line) {
  root_.write("file", "");
  for (const char* name : {"file", "file/inner"}) {
    const auto refused = CheckpointFolder::open(root_.path(name), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("no folder for checkpoints: Not a directory"),
              std::string::npos)
        << refused.error().message;
  }
}

TEST_F(CheckpointFolderTest, keeps_the_last_good_one_of_a_run_that_dies) {
  TrainRecipe recipe = small_recipe("fp32");
  recipe.optimizer.rate = 1e30;
  SmallTraining dying(recipe);
  CheckpointFolder folder = opened(path());
  ASSERT_TRUE(folder.save(*dying.trainer, {}));
  dying.steps(images_, 0, 4);
  const auto refused = folder.save(*dying.trainer, {0, 64, 1.0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::workload);
  EXPECT_EQ(folder.last(), at("step-00000000.safetensors"));
  EXPECT_FALSE(folder.best());
  SmallTraining fresh(recipe);
  EXPECT_TRUE(fresh.trainer->restore(at("last.safetensors")));
}

TEST(CutLog, drops_what_was_told_after_the_checkpoint) {
  const Folder folder;
  const std::string kept =
      "{\"run\":\"header\"}\n{\"attempt\":1}\n{\"attempt\":2}\n{\"note\":\"of step 2\"}\n";
  const auto log =
      folder.write("log", kept + "{\"attempt\":3}\n{\"note\":1}\n{\"attempt\":4}\n");
  const auto gone = cut_log(log, 2);
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(*gone, 3);
  EXPECT_EQ(read_file(log), kept);
  EXPECT_EQ(*cut_log(log, 2), 0);
  EXPECT_EQ(*cut_log(log, 0), 3);
  EXPECT_EQ(read_file(log), "{\"run\":\"header\"}\n");
}

TEST(CutLog, drops_a_line_that_a_kill_cut_short) {
  const Folder folder;
  const std::vector<std::string> ends = {"{\"attempt\":2", "{\"attempt\":2}", "{",
                                         std::string(9, '\0')};
  for (const std::string& end : ends) {
    const auto log = folder.write("log", "{\"attempt\":1}\n" + end);
    const auto gone = cut_log(log, 2);
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_EQ(*gone, 1);
    EXPECT_EQ(read_file(log), "{\"attempt\":1}\n");
  }
}

TEST(CutLog, takes_no_file_and_an_empty_one_as_they_are) {
  const Folder folder;
  EXPECT_EQ(*cut_log(folder.path("none"), 3), 0);
  EXPECT_FALSE(fs::exists(folder.path("none")));
  EXPECT_EQ(*cut_log(folder.write("log", ""), 3), 0);
}

TEST(CutLog, touches_nothing_that_is_no_log) {
  const Folder folder;
  const auto text = folder.write("text", "Dear diary,\n{\"attempt\":9}\n");
  const auto refused = cut_log(text, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, text.string() +
                                         ": line 1 is no JSON object; needed a log of a "
                                         "training");
  EXPECT_EQ(read_file(text), "Dear diary,\n{\"attempt\":9}\n");
  EXPECT_FALSE(cut_log(folder.path(), 2));
}

}  // namespace
}  // namespace halfwatt

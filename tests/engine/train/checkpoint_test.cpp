#include "engine/train/checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/formats/folder.h"
#include "engine/formats/safetensors.h"
#include "engine/train/small_training.h"

namespace halfwatt {
namespace {

// Trained without a stop, and saved after some steps and restored by a training that began
// anew: the same losses and states, bit by bit.
void expect_same_after_a_stop(const TrainRecipe& recipe) {
  const Folder folder;
  const ImageSet images = digits();
  SmallTraining whole(recipe);
  whole.steps(images, 0, 12);
  SmallTraining first(recipe);
  first.steps(images, 0, 5);
  const TrainPosition position{2, 80, 0.5};
  ASSERT_TRUE(first.trainer->save(folder.path("c"), position));
  SmallTraining second(recipe);
  second.steps(images, 7, 9);  // whatever it did before is gone
  second.losses.clear();
  const auto resumed = second.trainer->restore(folder.path("c"));
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->position, position);
  EXPECT_EQ(resumed->warnings, std::vector<std::string>());
  EXPECT_EQ(second.trainer->attempts(), 5);
  EXPECT_EQ(differing(*first.trainer, *second.trainer), "");
  second.steps(images, 5, 12);
  EXPECT_EQ(second.losses, std::vector<double>(whole.losses.begin() + 5, whole.losses.end()));
  EXPECT_EQ(differing(*whole.trainer, *second.trainer), "");
  EXPECT_EQ(whole.trainer->evaluate(some(images, 0, 100))->loss,
            second.trainer->evaluate(some(images, 0, 100))->loss);
}

TEST(Checkpoint, goes_on_to_the_same_bits_in_fp32) {
  TrainRecipe recipe = small_recipe("fp32");
  recipe.optimizer.max_norm = 1;
  recipe.optimizer.warmup = 4;
  recipe.optimizer.schedule = Optimizer::Schedule::cosine;
  recipe.optimizer.total = 12;
  expect_same_after_a_stop(recipe);
}

TEST(Checkpoint, goes_on_to_the_same_bits_with_a_loss_scale_that_moves) {
  TrainRecipe recipe = small_recipe("amp-fp16");
  recipe.optimizer.interval = 3;  // up at 3, 6, 9: overflows and skipped steps among them
  recipe.optimizer.growth = 1024;
  expect_same_after_a_stop(recipe);
  const ImageSet images = digits();
  SmallTraining training(recipe);
  training.steps(images, 0, 12);
  EXPECT_LT(training.trainer->states().save("step.applied").as<std::int64_t>()[0], 12)
      << "some step was skipped";
}

TEST(Checkpoint, goes_on_to_the_same_bits_with_averages_drop_path_and_dropout) {
  TrainRecipe recipe = small_recipe("amp-bf16");
  recipe.optimizer.average = 0.9;
  recipe.model.drop_path = 0.3;
  recipe.model.dropout = 0.2;
  expect_same_after_a_stop(recipe);
}

TEST(Checkpoint, goes_on_to_the_same_bits_with_every_other_thing_that_is_kept) {
  TrainRecipe recipe = small_recipe("fp8-delayed");
  recipe.layer_decay = 0.7;
  recipe.freeze = {"blocks.0"};
  recipe.optimizer.no_decay = {"head"};
  expect_same_after_a_stop(recipe);
  recipe = small_recipe("bf16-sr");
  recipe.optimizer.kind = Optimizer::Kind::sgd;
  recipe.micro_batches = 2;
  expect_same_after_a_stop(recipe);
}

TEST(Checkpoint, goes_on_in_the_midst_of_a_step) {
  for (const std::string_view mode : {"fp32", "amp-fp16"}) {
    TrainRecipe recipe = small_recipe(mode);
    recipe.micro_batches = 3;
    recipe.model.drop_path = 0.3;
    const ImageSet images = digits();
    SmallTraining whole(recipe);
    whole.steps(images, 0, 4);
    const Folder folder;
    SmallTraining first(recipe);
    first.steps(images, 0, 2);
    for (int part = 0; part < 2; ++part) {
      const auto done = first.trainer->micro_step(some(images, 2 * 48 + part * 16, 16));
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_FALSE(*done);
    }
    EXPECT_EQ(first.trainer->attempts(), 2);
    ASSERT_TRUE(first.trainer->save(folder.path("c"), {0, 2 * 48 + 32, {}}));
    SmallTraining second(recipe);
    ASSERT_TRUE(second.trainer->restore(folder.path("c")));
    EXPECT_EQ(second.trainer->images_left(), 16);
    EXPECT_EQ(second.trainer->attempts(), 2);
    const auto rest = second.trainer->step(some(images, 2 * 48 + 32, 16));
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_EQ(rest->loss, whole.losses[2]);
    EXPECT_EQ(rest->attempt, 3);
    second.steps(images, 3, 4);
    EXPECT_EQ(second.losses.back(), whole.losses[3]);
    EXPECT_EQ(differing(*whole.trainer, *second.trainer), "") << mode;
  }
}

TEST(Checkpoint, remembers_what_the_watch_saw) {
  const ImageSet images = digits();
  TrainRecipe recipe = small_recipe("amp-fp16");
  recipe.optimizer.growth = 65536;
  recipe.optimizer.interval = 1;  // every other step overflows, or more
  recipe.optimizer.backoff = 0.25;
  SmallTraining whole(recipe);
  whole.steps(images, 0, 60);
  EXPECT_NE(std::count(whole.states.begin() + 30, whole.states.end(), NumericalState::skipping),
            0);
  const Folder folder;
  SmallTraining first(recipe);
  first.steps(images, 0, 30);
  ASSERT_TRUE(first.trainer->save(folder.path("c"), {}));
  SmallTraining second(recipe);
  ASSERT_TRUE(second.trainer->restore(folder.path("c")));
  second.steps(images, 30, 60);
  EXPECT_EQ(second.states,
            std::vector<NumericalState>(whole.states.begin() + 30, whole.states.end()));
}

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    recipe_.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    SmallTraining training(recipe_);
    ASSERT_TRUE(training.trainer->save(path(), {}));
  }
  std::filesystem::path path() const { return folder_.path("c.safetensors"); }
  // What a training by `recipe` says to it, which is left as it was.
  std::string says(const TrainRecipe& recipe) const {
    SmallTraining training(recipe);
    SmallTraining same(recipe);
    const auto resumed = training.trainer->restore(path());
    EXPECT_EQ(differing(*training.trainer, *same.trainer), "");
    return resumed ? "nothing" : resumed.error().message;
  }
  std::string tail(const std::string& message) const {
    const std::string start = path().string() + ": ";
    return message.starts_with(start) ? message.substr(start.size()) : message;
  }

  Folder folder_;
  TrainRecipe recipe_ = small_recipe("fp32");
};

TEST_F(Refused, by_another_recipe_which_names_the_field) {
  const auto expect = [&](const auto& change, const std::string& says_so) {
    TrainRecipe other = recipe_;
    change(other);
    EXPECT_EQ(tail(says(other)), says_so);
  };
  expect([](TrainRecipe& other) { other.model.depth = 1; },
         "model.depth is 2 in the checkpoint, 1 in this training");
  expect([](TrainRecipe& other) { other.model.pool = VitConfig::Pool::mean; },
         "model.pool is \"token\" in the checkpoint, \"mean\" in this training");
  expect([](TrainRecipe& other) { other.precision = *precision_named("amp-bf16"); },
         "precision.name is \"fp32\" in the checkpoint, \"amp-bf16\" in this training");
  expect([](TrainRecipe& other) { other.optimizer.rate = 0.1; },
         "optimizer.rate is 0.001 in the checkpoint, 0.1 in this training");
  expect([](TrainRecipe& other) { other.micro_batches = 2; },
         "micro_batches is 1 in the checkpoint, 2 in this training");
  expect([](TrainRecipe& other) { other.seed = 9; },
         "seed is 1 in the checkpoint, 9 in this training");
  expect([](TrainRecipe& other) { other.freeze = {"head"}; },
         "freeze has 0 entries in the checkpoint, 1 in this training");
  expect([](TrainRecipe& other) { other.class_names[3] = "drei"; },
         "class_names[3] is \"3\" in the checkpoint, \"drei\" in this training");
  expect([](TrainRecipe& other) { other.class_names.clear(); },
         "class_names has 10 entries in the checkpoint, 0 in this training");
}

TEST_F(Refused, not_by_one_that_comes_to_the_same) {
  TrainRecipe other = recipe_;
  other.recompute = true;
  other.optimizer.total = 1000;  // of no schedule
  SmallTraining training(other);
  EXPECT_TRUE(training.trainer->restore(path()));
}

TEST_F(Refused, where_it_is_none_or_damaged) {
  ASSERT_TRUE(save_weights(path(), SmallTraining(recipe_).trainer->states()));
  EXPECT_EQ(tail(says(recipe_)),
            "no checkpoint of halfwatt, for it has no halfwatt.checkpoint; weights alone are "
            "what --weights reads");
  const auto expect_damaged = [&](const std::string& metadata, const std::string& part) {
    ASSERT_TRUE(write_safetensors(path(), {}, {{"halfwatt.checkpoint", metadata}}));
    const std::string message = tail(says(recipe_));
    EXPECT_NE(message.find(part), message.npos) << message;
    EXPECT_EQ(message.find('\n'), message.npos);
  };
  expect_damaged("{", "a damaged checkpoint: its metadata is no JSON object");
  expect_damaged("[1]", "a damaged checkpoint: its metadata is no JSON object");
  expect_damaged(R"({"format": 2})", "a checkpoint of format 2, needs 1");
  const std::string recipe = R"({"format": 1, "recipe": )" + recipe_json(recipe_);
  expect_damaged(R"({"format": 1})", "is not there in the checkpoint");
  expect_damaged(recipe + "}", "a damaged checkpoint: ");
  expect_damaged(recipe + R"(, "attempt": "x"})", "a damaged checkpoint: ");
  const std::string rest =
      R"(, "loss": "0", "watch": {"skipped": "", "state": "live", "reason": ""},
         "position": {"epoch": 0, "image": 0})";
  expect_damaged(recipe + rest + R"(, "attempt": 1, "part": 1})", "attempt, part or position");
  expect_damaged(recipe + rest + R"(, "attempt": 1, "part": 0})",
                 "a damaged checkpoint: the state blocks.0.attn.proj.bias is missing");
  EXPECT_FALSE(SmallTraining(recipe_).trainer->restore(folder_.path("none")));
}

TEST_F(Refused, never_for_threads_but_with_a_warning_that_names_them) {
  SmallTraining training(recipe_, 1);
  SmallTraining three(recipe_, 3);
  ASSERT_TRUE(three.trainer->save(path(), {}));
  const auto resumed = training.trainer->restore(path());
  ASSERT_TRUE(resumed) << resumed.error().message;
  ASSERT_EQ(resumed->warnings.size(), 1U);
  EXPECT_EQ(tail(resumed->warnings[0]),
            "made with threads 3, goes on with 1: numbers may differ in their last bits from "
            "those of a run that was never stopped");
}

TEST_F(Refused, never_for_a_version_or_isa_but_with_a_warning_that_names_it) {
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file);
  auto json = nlohmann::json::parse(file->header().metadata.at("halfwatt.checkpoint"));
  json["made_by"]["halfwatt"] = "0.0.9";
  json["made_by"].erase("isa");
  SmallTraining training(recipe_);
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const StoredTensor& each : file->header().tensors) {
    tensors.push_back(*file->read(each));
    named.push_back({each.name, tensors.back().view()});
  }
  ASSERT_TRUE(write_safetensors(path(), named, {{"halfwatt.checkpoint", json.dump()}}));
  const auto resumed = training.trainer->restore(path());
  ASSERT_TRUE(resumed) << resumed.error().message;
  ASSERT_EQ(resumed->warnings.size(), 2U);
  EXPECT_NE(resumed->warnings[0].find("made with halfwatt 0.0.9, goes on with "),
            std::string::npos);
  EXPECT_NE(resumed->warnings[1].find("made with isa unknown, goes on with "),
            std::string::npos);
}

TEST(Checkpoint, of_a_dead_run_is_not_written) {
  const Folder folder;
  TrainRecipe recipe = small_recipe("fp32");
  recipe.optimizer.rate = 1e30;
  SmallTraining training(recipe);
  training.steps(digits(), 0, 4);
  ASSERT_EQ(training.trainer->state(), NumericalState::dead);
  folder.write("c", "the last good one");
  const auto saved = training.trainer->save(folder.path("c"), {});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().kind, ErrorKind::workload);
  EXPECT_NE(saved.error().message.find("the run is dead and is not saved: "),
            std::string::npos);
  EXPECT_EQ(read_file(folder.path("c")), "the last good one");
}

TEST(Checkpoint, has_all_states_but_the_copies_and_parameters_as_timm_names_them) {
  const Folder folder;
  TrainRecipe recipe = small_recipe("amp-fp16");
  recipe.optimizer.average = 0.9;
  recipe.micro_batches = 2;
  SmallTraining training(recipe);
  ASSERT_TRUE(training.trainer->save(folder.path("c"), {}));
  const auto file = SafetensorsFile::open(folder.path("c"));
  ASSERT_TRUE(file);
  for (const std::string name :
       {"head.weight", "head.weight.exp_avg", "head.weight.exp_avg_sq", "head.weight.gradient",
        "head.weight.ema", "scaler.scale", "scaler.age", "step.applied"}) {
    EXPECT_NE(file->find(name), nullptr) << name;
  }
  EXPECT_EQ(file->find("head.weight@f16"), nullptr);
}

}  // namespace
}  // namespace halfwatt

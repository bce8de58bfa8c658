// Handwritten digits by the one recipe that all precisions have. bench/digits runs every
// precision and three seeds; here one of each speaks for them.

#include <gtest/gtest.h>

#include <fstream>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/train/recipe_file.h"

namespace halfwatt {
namespace {

TEST(Digits, are_read_as_well_as_a_person_would_want) {
  const auto file = read_recipe("data/digits.recipe.json");
  ASSERT_TRUE(file) << file.error().message;
  const auto backend = open_cpu();
  const auto trained = train_by(*file, *precision_named("amp-bf16"), 1, **backend);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(trained->last.state, NumericalState::live) << trained->last.reason;
  EXPECT_GE(static_cast<double>(trained->evaluation.right),
            0.97 * static_cast<double>(trained->evaluation.images));
}

std::string refusal(const std::string& text) {
  const std::string path = testing::TempDir() + "recipe.json";
  std::ofstream(path) << text;
  const auto file = read_recipe(path);
  EXPECT_FALSE(file) << text;
  return file ? "" : file.error().message;
}

TEST(RecipeFile, is_refused_with_the_key_that_is_wrong) {
  const std::string data = R"("data":{"pixels":"x.csv"})";
  const std::string model = R"("model":{"name":"vit_micro_patch2_8"})";
  EXPECT_NE(refusal("[]").find("JSON object"), std::string::npos);
  EXPECT_NE(refusal("{" + model + "}").find("data"), std::string::npos);
  EXPECT_NE(refusal("{" + data + "," + model + R"(,"epoch":3})").find("no key epoch"),
            std::string::npos);
  EXPECT_NE(refusal("{" + data + "," + model + R"(,"batch":"x"})").find("batch is \"x\""),
            std::string::npos);
  EXPECT_NE(refusal("{" + data + R"(,"model":{"name":"resnet"}})").find("no model resnet"),
            std::string::npos);
  for (const char* batch : {"16.5", "true", "1e30", "18446744073709551615", "-0.5"}) {
    EXPECT_NE(refusal("{" + data + "," + model + R"(,"batch":)" + batch + "}")
                  .find(", needs a whole number"),
              std::string::npos)
        << batch;
  }
  EXPECT_NE(refusal("{" + data + "," + model + R"(,"micro_batches":4294967297})")
                .find("micro_batches is 4294967297, needs a whole number"),
            std::string::npos);
  EXPECT_NE(refusal("{" + data + "," + model + R"(,"batch":0})").find("1 or more"),
            std::string::npos);
  EXPECT_NE(
      refusal("{" + model + R"(,"data":{"pixels":"x.csv","held_out":2}})").find("held_out"),
      std::string::npos);
  EXPECT_NE(refusal("{" + data + R"(,"model":{"name":"vit_micro_patch2_8","depth":-1}})")
                .find("depth"),
            std::string::npos);
  EXPECT_FALSE(read_recipe("no/such/file.json"));
}

TEST(RecipeFile, says_what_is_frozen_and_how_rate_and_decay_fall) {
  const std::string path = testing::TempDir() + "recipe.json";
  const std::string start =
      R"({"data":{"pixels":"x.csv"},"model":{"name":"vit_micro_patch2_8"},)";
  std::ofstream(path) << start << R"("freeze":["patch_embed"],"optimizer":{"layer_decay":0.75,)"
                      << R"("no_decay":["head"]}})";
  const auto file = read_recipe(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->recipe.freeze, std::vector<std::string>{"patch_embed"});
  EXPECT_EQ(file->recipe.optimizer.no_decay, std::vector<std::string>{"head"});
  EXPECT_EQ(file->recipe.layer_decay, 0.75);
  EXPECT_NE(
      refusal(start + R"("optimizer":{"layer_decay":0}})").find("layer_decay is 0, needs"),
      std::string::npos);
  EXPECT_NE(refusal(start + R"("freeze":"head"})").find("freeze is \"head\""),
            std::string::npos);
}

TEST(RecipeFile, is_held_against_its_pictures_before_anything_is_trained) {
  auto file = read_recipe("data/digits.recipe.json");
  ASSERT_TRUE(file);
  const auto backend = open_cpu();
  const auto message = [&] {
    const auto trained = train_by(*file, *precision_named("fp32"), 1, **backend);
    EXPECT_FALSE(trained);
    return trained ? "" : trained.error().message;
  };
  file->recipe.model.classes = 5;
  EXPECT_NE(message().find("needs those of 5 classes"), std::string::npos);
  file->recipe.model.classes = 10;
  file->recipe.batch = 5000;
  EXPECT_NE(message().find("a step needs 5000"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

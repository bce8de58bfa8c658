#pragma once

#include <filesystem>

#include "engine/data/image_set.h"
#include "engine/train/trainer.h"

namespace halfwatt {

/// A training as a file describes it: data/digits.recipe.json is one. The precision is not in
/// it: one file serves all of them.
struct RecipeFile {
  std::filesystem::path pixels;
  PixelCsv format;
  double held_out = 0.2;
  std::uint64_t split_seed = 1;
  std::int64_t epochs = 1;
  TrainRecipe recipe;
};

/// Errors: the file cannot be read, is no JSON, or a key is unknown, missing or of a wrong
/// kind; the message names it.
Result<RecipeFile> read_recipe(const std::filesystem::path& path);

/// Trains by `file` in `precision`, from the parameters and in the order that `seed` says, and
/// evaluates what was held out. `last` is the report of the last step.
struct Trained {
  Evaluation evaluation;
  StepReport last;
};
Result<Trained> train_by(const RecipeFile& file,
                         const Precision& precision,
                         std::uint64_t seed,
                         Backend& backend);

}  // namespace halfwatt

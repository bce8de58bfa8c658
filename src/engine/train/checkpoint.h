#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/exec/states.h"
#include "engine/train/numerical_watch.h"
#include "engine/train/recipe.h"

namespace halfwatt {

/// Where a training stands in its data, and how well it did there.
struct TrainPosition {
  std::int64_t epoch = 0;       ///< from 0
  std::int64_t image = 0;       ///< how many of the epoch's order were taken
  std::optional<double> score;  ///< of an evaluation made here; more is better
  bool operator==(const TrainPosition&) const = default;
};

/// What goes on from one step to the next beside the states.
struct TrainProgress {
  std::int64_t attempt = 0;  ///< steps that were begun
  int part = 0;              ///< micro-batches done of a step that is not at its end
  double loss = 0;           ///< what they add to its loss
  NumericalWatch::Memory watch;
  TrainPosition position;
};

/// What a restored training goes on from.
struct Restored {
  TrainProgress progress;
  /// Why what follows may differ in its last bits: threads, ISA or a version are others.
  std::vector<std::string> warnings;
};

/// Writes a training to `path`, a safetensors file: every state but the copies, which follow
/// from their parameters, under its name; all else as JSON in the metadata. On any error and
/// after a power cut the file that was there before is there, whole. Errors: as
/// write_safetensors().
Result<void> write_checkpoint(const std::filesystem::path& path,
                              const TrainRecipe& recipe,
                              const Target& target,
                              const States& states,
                              const TrainProgress& progress);

/// Fills `states` from a checkpoint of a training by the same recipe. Errors (bad_input): no
/// checkpoint, a damaged one, or the first field of the recipe, or state, that differs; then
/// nothing was loaded. A file that becomes unreadable half way leaves its first states loaded.
Result<Restored> read_checkpoint(const std::filesystem::path& path,
                                 const TrainRecipe& recipe,
                                 const Target& target,
                                 States& states);

/// The position of a checkpoint, of which nothing else is looked at. Errors: no checkpoint.
Result<TrainPosition> position_of(const std::filesystem::path& path);

}  // namespace halfwatt

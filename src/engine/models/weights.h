#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/exec/states.h"

namespace halfwatt {

/// What became of numbers on their way from a file into states.
struct WeightsReport {
  std::int64_t tensors = 0;
  std::int64_t converted = 0;    ///< of these, how many have another dtype in the file
  std::int64_t not_finite = 0;   ///< elements that are no finite numbers in the file
  std::string first_not_finite;  ///< the first tensor that holds one
  std::int64_t overflowed = 0;   ///< elements too large for the state or a copy of it
  std::string first_overflowed;
  /// Names of the classes by label, where the file has any and its head is taken.
  std::vector<std::string> classes;
  std::vector<std::string> changes;  ///< a line for each thing that is not as the file has it
};

/// What may differ between a file of weights and the model that is to learn on from them.
struct FineTuning {
  bool reset_head = false;  ///< the head stays as it is, whatever the file holds of one
  bool resize = false;      ///< position embeddings of another image size are resampled
};

/// Fills the parameters of `states`, and the copies of them, from a safetensors file under
/// timm's names, converted to their dtypes; states may hold copies alone, as inference does.
/// Scales and histories of fp8 operands are taken from the file where they are there; an
/// inference in fp8-delayed needs the scales. A checkpoint is as good: its weights are the
/// averages, where it has any. `learning` is for a model that learns on from them; what it
/// allows to differ is told in the report. Errors (bad_input): a malformed file; one with other
/// tensors than these parameters: one line with those that are missing, extra, of another shape
/// or no floats, and the flag that mends it where one does. Nothing is loaded then; a file that
/// becomes unreadable half way leaves its first tensors loaded.
Result<WeightsReport> load_weights(const std::filesystem::path& path,
                                   States& states,
                                   const std::optional<FineTuning>& learning = {});

/// What is saved as a model's weights.
enum class SavedWeights {
  parameters,
  averages,  ///< that a training keeps of them, in their own dtype; of what has none, itself
};

/// Writes the parameters of `states` as timm names and shapes them, in their dtypes; one that
/// several layers use is there once; and the scales and histories of fp8 operands, if it has
/// any, under the names of these states. The names of the `classes`, if given, go into the
/// metadata. The states must hold the parameters, not copies alone. Errors: as
/// write_safetensors().
Result<void> save_weights(const std::filesystem::path& path,
                          const States& states,
                          SavedWeights which = SavedWeights::parameters,
                          const std::vector<std::string>& classes = {});

/// Sets the parameters of `states`, and the copies of them, as initial_value() says.
void draw_weights(States& states, std::uint64_t seed);

}  // namespace halfwatt

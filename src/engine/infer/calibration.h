#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/exec/states.h"
#include "engine/passes/precision.h"

namespace halfwatt {

/// What a calibration has seen, and of what.
struct Calibration {
  std::string model;
  std::string weights;      ///< the name of the file, without its folder
  std::string sha256;       ///< of that file
  std::int64_t images = 0;  ///< that were looked at
  std::string date;         ///< "2026-12-01"
  /// The largest magnitude of each operand of fp8, "blocks.0.mlp.fc1.input", in all of them.
  std::map<std::string, float, std::less<>> amax;
};

/// The largest magnitudes that an inference with InferRecipe::calibrates has seen so far, by
/// operand; NaN or infinite where a number is.
std::map<std::string, float, std::less<>> largest_magnitudes(const States& states);

/// Writes it with the scales that follow, as docs/commands.md says: the same file to the byte
/// for the same calibration. Magnitudes must be finite. Errors: as write_whole_file().
Result<void> write_calibration(const std::filesystem::path& path, const Calibration& seen);

/// The scales of such a file, for an inference of `model` with the file `weights`. Errors
/// (bad_input): no such file, or another kind of one; one of another model or of other weights;
/// a magnitude that is not finite, a scale that is no positive number.
Result<Fp8Scales> read_scales(const std::filesystem::path& path,
                              std::string_view model,
                              const std::filesystem::path& weights);

}  // namespace halfwatt

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "progress/bars.h"
#include "progress/output_lines.h"
#include "progress/preset.h"
#include "progress/source_reading.h"

namespace halfwatt {

/// Reads steps and losses off what a job prints. A step is known as soon as its line is clear,
/// a loss when its line is whole.
class OutputReader {
 public:
  explicit OutputReader(Preset preset) : preset_(std::move(preset)) {}

  void take(std::string_view bytes, Seconds at);
  /// The job ended, and perhaps in the middle of a line; the next bytes are another's.
  void restart(Seconds at);
  SourceReading reading() const;

 private:
  bool take_line(std::string_view line, bool is_whole, Seconds at);
  std::optional<double> take_step(std::string_view line, bool is_whole, Seconds at);
  void take_loss(std::string_view line, std::optional<double> step);

  Preset preset_;
  OutputLines lines_;
  Bars bars_;
  StepCounter items_;
  Losses losses_;
  std::optional<double> step_of_loss_;  ///< on the line of the last loss
};

}  // namespace halfwatt

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "progress/step_counter.h"

namespace halfwatt {

/// One number of a bar, or of a line that counts.
struct BarNumber {
  std::string_view label;
  std::optional<std::string_view> total;
  double step = 0;
  bool is_aside = false;  ///< of something beside the training
};

/// The bars of a program, told apart by label (digits left out, so that the epochs of one bar
/// are one) or, where there is none, by total; and which of them is the training: the first
/// that moves, until it is silent for long while another moves.
class Bars {
 public:
  /// True if it is progress of the training.
  bool see(const BarNumber& number, Seconds at);
  /// The job was started again.
  void restart();

  bool has_spoken() const { return !bars_.empty(); }
  double steps() const { return steps_; }
  Seconds at() const { return at_; }
  /// As StepCounter, of the training.
  std::optional<StepFall> fall() const;
  /// How often another bar became the training.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Bar {
    std::string name;
    StepCounter counter;
    bool is_aside = false;
    Seconds seen;
    Seconds moved;
    Seconds longest_silence;
  };

  Bar& bar_of(const BarNumber& number, Seconds at);
  bool takes_over(const Bar& bar, Seconds at) const;

  std::vector<Bar> bars_;
  std::optional<std::string> training_;  ///< name of the bar
  double steps_ = 0;
  Seconds at_;
  std::uint64_t changes_ = 0;
};

}  // namespace halfwatt

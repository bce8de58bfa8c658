#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfwatt {

/// What a model makes of labelled images, each counted once. One logit tells two classes apart.
/// A number that is none is taken for the largest, and of equal ones the first, as PyTorch
/// does.
struct Evaluation {
  std::int64_t images = 0;
  std::int64_t right = 0;       ///< whose label has the largest logit
  std::int64_t right_of_5 = 0;  ///< whose label has one of the five largest
  double loss = 0;              ///< mean
  std::int64_t classes = 0;
  std::vector<std::int64_t> confusion;  ///< [label, answer], classes squared

  /// Images of class `label` that were taken for `answer`.
  std::int64_t taken_for(std::int64_t label, std::int64_t answer) const {
    return confusion[static_cast<std::size_t>(label * classes + answer)];
  }
  /// Counts one image; `logits` has one for every class, or one of a binary question.
  void count(std::span<const double> logits, std::int64_t label);
  /// Adds what was made of other images.
  void add(const Evaluation& other);
};

}  // namespace halfwatt

#include "engine/train/evaluation.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {

// Whether class `one` comes before class `other` in the order of their logits.
bool is_ahead(std::span<const double> logits, std::size_t one, std::size_t other) {
  const double a = logits[one];
  const double b = logits[other];
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && (!std::isnan(b) || one < other);
  }
  return a > b || (a == b && one < other);
}

std::size_t rank(std::span<const double> logits, std::size_t of) {
  std::size_t ahead = 0;
  for (std::size_t at = 0; at < logits.size(); ++at) {
    ahead += at != of && is_ahead(logits, at, of) ? 1 : 0;
  }
  return ahead;
}

std::size_t best(std::span<const double> logits) {
  std::size_t first = 0;
  for (std::size_t at = 1; at < logits.size(); ++at) {
    first = is_ahead(logits, at, first) ? at : first;
  }
  return first;
}

}  // namespace

void Evaluation::count(std::span<const double> logits, std::int64_t label) {
  // The logit of a binary question is that of "yes"; "no" has 0.
  const std::array<double, 2> binary = {0, logits[0]};
  const std::span<const double> all =
      logits.size() == 1 ? std::span<const double>(binary) : logits;
  const auto count = static_cast<std::int64_t>(all.size());
  if (classes == 0) {
    classes = count;
    confusion.resize(all.size() * all.size());
  }
  HALFWATT_CHECK(classes == count && label >= 0 && label < count, "a label of these classes");
  constexpr std::size_t kFive = 5;
  const std::size_t place = rank(all, static_cast<std::size_t>(label));
  ++images;
  right += place == 0 ? 1 : 0;
  right_of_5 += place < kFive ? 1 : 0;
  ++confusion[static_cast<std::size_t>(label) * all.size() + best(all)];
}

void Evaluation::add(const Evaluation& other) {
  if (other.images == 0) {
    return;
  }
  if (images == 0) {
    *this = other;
    return;
  }
  HALFWATT_CHECK(classes == other.classes, "evaluations of one model");
  const auto mine = static_cast<double>(images);
  const auto theirs = static_cast<double>(other.images);
  loss = (loss * mine + other.loss * theirs) / (mine + theirs);
  images += other.images;
  right += other.right;
  right_of_5 += other.right_of_5;
  for (std::size_t at = 0; at < confusion.size(); ++at) {
    confusion[at] += other.confusion[at];
  }
}

}  // namespace halfwatt

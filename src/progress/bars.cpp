#include "progress/bars.h"

#include <algorithm>

namespace halfwatt {
namespace {

constexpr std::size_t kMostBars = 64;
constexpr std::size_t kMostBytesOfAName = 64;
// A validation is usually shorter; the wait after a preparation of data is no loss beside the
// warm-up.
constexpr Seconds kPatience{20};
// Silences of the training may grow, since a validation takes longer on a larger network.
constexpr double kPatienceInSilences = 3;
// What is called "val" may still be all that a job does.
constexpr double kPatienceWithAsides = 10;

std::string name_of(const BarNumber& number) {
  std::string name;
  for (const char c : number.label.substr(0, kMostBytesOfAName)) {
    if ((c < '0' || c > '9') && c != ' ' && c != ':') {
      name += c;
    }
  }
  if (name.empty() && number.total) {
    name = number.total->substr(0, kMostBytesOfAName);
  }
  return name;
}

}  // namespace

Bars::Bar& Bars::bar_of(const BarNumber& number, Seconds at) {
  const std::string name = name_of(number);
  auto found = std::ranges::find(bars_, name, &Bar::name);
  if (found == bars_.end() && bars_.size() == kMostBars) {
    // The one that was silent for longest makes room, but never the training.
    found = std::ranges::min_element(bars_, [this](const Bar& a, const Bar& b) {
      const bool a_stays = a.name == training_;
      const bool b_stays = b.name == training_;
      return a_stays != b_stays ? b_stays : a.seen < b.seen;
    });
    *found = Bar{name, {}, false, at, at, {}};
  } else if (found == bars_.end()) {
    found = bars_.insert(bars_.end(), Bar{name, {}, false, at, at, {}});
  }
  return *found;
}

bool Bars::takes_over(const Bar& bar, Seconds at) const {
  if (!training_) {
    return true;
  }
  const Bar& training = *std::ranges::find(bars_, *training_, &Bar::name);
  if (training.is_aside != bar.is_aside && training.is_aside) {
    return true;
  }
  Seconds patience = std::max(kPatience, training.longest_silence * kPatienceInSilences);
  if (training.is_aside != bar.is_aside) {
    patience = patience * kPatienceWithAsides;
  }
  return at - training.moved > patience;
}

bool Bars::see(const BarNumber& number, Seconds at) {
  if (bars_.empty()) {
    at_ = at;
  }
  Bar& bar = bar_of(number, at);
  bar.seen = at;
  bar.is_aside = bar.is_aside || number.is_aside;
  const double before = bar.counter.steps();
  if (!bar.counter.see(number.step, at)) {
    return false;
  }
  bar.longest_silence = std::max(bar.longest_silence, at - bar.moved);
  bar.moved = at;
  if (training_ != bar.name) {
    if (!takes_over(bar, at)) {
      return false;
    }
    changes_ += training_ ? 1 : 0;
    training_ = bar.name;
  }
  steps_ += bar.counter.steps() - before;
  at_ = at;
  return true;
}

std::optional<StepFall> Bars::fall() const {
  return training_ ? std::ranges::find(bars_, *training_, &Bar::name)->counter.fall()
                   : std::nullopt;
}

void Bars::restart() {
  for (Bar& bar : bars_) {
    bar.counter.restart();
  }
}

}  // namespace halfwatt

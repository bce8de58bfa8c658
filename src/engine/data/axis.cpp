#include "engine/data/axis.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {

double support(Filter filter) {
  switch (filter) {
    case Filter::box:
      return 0.5;
    case Filter::bilinear:
      return 1.0;
    case Filter::bicubic:
      return 2.0;
  }
  return 0;
}

// The order of these sums is Pillow's, and so is every bit of them.
double weight(Filter filter, double x) {
  if (filter == Filter::box) {
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
  }
  x = std::fabs(x);
  if (filter == Filter::bilinear) {
    return x < 1.0 ? 1.0 - x : 0.0;
  }
  constexpr double kA = -0.5;
  const double near = ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  const double far = (((x - 5) * x + 8) * x - 4) * kA;
  return x < 1.0 ? near : x < 2.0 ? far : 0.0;
}

std::int32_t fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<std::int32_t>(scaled + std::copysign(0.5, scaled));
}

}  // namespace

Window inputs_of(const Side& side, Filter filter, std::int64_t output) {
  const double scale = static_cast<double>(side.from) / static_cast<double>(side.to);
  const double reach = support(filter) * std::max(scale, 1.0);
  const double center = (static_cast<double>(output) + 0.5) * scale;
  const auto first =
      std::max(static_cast<std::int64_t>(std::floor(center - reach + 0.5)), std::int64_t{0});
  const auto end =
      std::min(static_cast<std::int64_t>(std::floor(center + reach + 0.5)), side.from);
  return {first, end - first};
}

Window inputs_of(const Side& side, Filter filter) {
  const Window front = inputs_of(side, filter, side.begin);
  const Window back = inputs_of(side, filter, side.end - 1);
  return {front.first, back.first + back.count - front.first};
}

PixelAxis::PixelAxis(const Side& side, Filter filter) {
  HALFWATT_CHECK(
      side.from > 0 && 0 <= side.begin && side.begin < side.end && side.end <= side.to,
      "a side has pixels, and those that are wanted are of it");
  const double scale = static_cast<double>(side.from) / static_cast<double>(side.to);
  const double widening = std::max(scale, 1.0);
  const double reach = support(filter) * widening;
  const double shrink = 1.0 / widening;
  windows_.resize(static_cast<std::size_t>(side.end - side.begin));
  stride_ = (2 * static_cast<std::int64_t>(std::ceil(reach)) + 1 + kTapsAtOnce - 1) /
            kTapsAtOnce * kTapsAtOnce;
  const std::size_t weights = windows_.size() * static_cast<std::size_t>(stride_);
  whole_.resize(weights);
  parts_.resize(2 * weights);

  std::vector<double> raw(static_cast<std::size_t>(stride_));
  for (std::int64_t place = 0; place < places(); ++place) {
    const double center = (static_cast<double>(side.begin + place) + 0.5) * scale;
    const Window inputs = inputs_of(side, filter, side.begin + place);
    const auto count = static_cast<std::size_t>(inputs.count);
    double sum = 0;
    for (std::size_t tap = 0; tap < count; ++tap) {
      const auto at = static_cast<double>(inputs.first + static_cast<std::int64_t>(tap));
      raw[tap] = weight(filter, (at - center + 0.5) * shrink);
      sum += raw[tap];
    }
    std::int32_t* const whole = whole_.data() + place * stride_;
    for (std::size_t tap = 0; tap < count; ++tap) {
      whole[tap] = fixed(sum != 0.0 ? raw[tap] / sum : raw[tap]);
    }
    windows_[static_cast<std::size_t>(place)] = inputs;
    keep(place);
  }
  begin_ = windows_.front().first;
  for (Window& window : windows_) {
    end_ = std::max(end_, window.first + window.count);
    window.first -= begin_;
  }
}

// Weights of 0 at the end are left out: a side that stays as it is costs little then. Those at
// the beginning stay, so that no window begins before the one in front of it.
void PixelAxis::keep(std::int64_t place) {
  const std::int32_t* const whole = whole_.data() + place * stride_;
  std::int64_t& count = windows_[static_cast<std::size_t>(place)].count;
  while (count > 1 && whole[count - 1] == 0) {
    --count;
  }
  widest_ = std::max(widest_, count);
  std::int16_t* const parts = parts_.data() + 2 * place * stride_;
  for (std::int64_t tap = 0; tap < count; ++tap) {
    std::int16_t* const low = parts + tap / 2 * 4 + tap % 2;
    low[0] = static_cast<std::int16_t>(whole[tap] & ((1 << kLowBits) - 1));
    low[2] = static_cast<std::int16_t>(whole[tap] >> kLowBits);
  }
}

Weights PixelAxis::weights(std::int64_t first) const {
  return {windows_.data() + first, places() - first, stride_, whole_.data() + first * stride_,
          parts_.data() + 2 * first * stride_};
}

}  // namespace halfwatt

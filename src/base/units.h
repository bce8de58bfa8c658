#pragma once

#include <compare>

namespace halfwatt {

/// A number with its unit in the type: `Watts(300) * Seconds(2)` is `Joules(600)`.
template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  constexpr double value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator+(Quantity other) const { return Quantity(value_ + other.value_); }
  constexpr Quantity operator-(Quantity other) const { return Quantity(value_ - other.value_); }
  constexpr Quantity operator*(double factor) const { return Quantity(value_ * factor); }
  constexpr Quantity operator/(double divisor) const { return Quantity(value_ / divisor); }
  constexpr double operator/(Quantity other) const { return value_ / other.value_; }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }

 private:
  double value_ = 0;
};

using Watts = Quantity<struct WattUnit>;
using Joules = Quantity<struct JouleUnit>;
using Seconds = Quantity<struct SecondUnit>;
using Celsius = Quantity<struct CelsiusUnit>;
using Megahertz = Quantity<struct MegahertzUnit>;
using Bytes = Quantity<struct ByteUnit>;

constexpr Joules operator*(Watts power, Seconds time) {
  return Joules(power.value() * time.value());
}
constexpr Watts operator/(Joules energy, Seconds time) {
  return Watts(energy.value() / time.value());
}

}  // namespace halfwatt

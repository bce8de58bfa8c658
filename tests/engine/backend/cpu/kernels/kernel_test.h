#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "base/rng.h"
#include "engine/backend/cpu/kernels/kernels.h"

namespace halfwatt::cpu {

inline double value(float x) { return static_cast<double>(x); }
inline double value(double x) { return x; }
inline double value(Bf16 bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

/// `x` as an element, exact to its format's rounding.
template <class E>
E element(double x) {
  if constexpr (std::is_same_v<E, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    return static_cast<Bf16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  } else {
    return static_cast<E>(x);
  }
}

/// Relative error of one rounding: of arithmetic in Real<E>, and of storing an `E`.
template <class E>
inline constexpr double kUnit = std::is_same_v<E, double> ? 0x1p-53 : 0x1p-24;
template <class E>
inline constexpr double kStoreUnit = std::is_same_v<E, Bf16> ? 0x1p-8 : kUnit<E>;

/// Normally distributed, the same in every format but for its rounding.
template <class E>
std::vector<E> numbers(Index count, std::uint64_t seed, double scale = 1) {
  Rng rng(seed);
  std::vector<E> all(static_cast<std::size_t>(count));
  for (E& one : all) {
    one = element<E>(rng.normal() * scale);
  }
  return all;
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to;
  for (const From one : from) {
    to.push_back(element<To>(value(one)));
  }
  return to;
}

/// Uninitialised memory as kernels want it, filled with NaN so that what is read before it is
/// written shows.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) {
    data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
    std::fill(data_, data_ + bytes, std::byte{0xff});
  }
  ~Workspace() { ::operator delete (data_, std::align_val_t{64}); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::byte* data() { return data_; }

 private:
  std::byte* data_;
};

/// Whether the bits are equal: NaN equals itself, 0 does not equal -0.
template <class E>
bool same_bits(const std::vector<E>& one, const std::vector<E>& other) {
  return one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(), [](E a, E b) {
           return std::bit_cast<std::array<std::byte, sizeof(E)>>(a) ==
                  std::bit_cast<std::array<std::byte, sizeof(E)>>(b);
         });
}

/// The largest |got - wanted| over the largest |wanted|.
template <class E>
double error_of(const std::vector<E>& got, const std::vector<double>& wanted) {
  double away = 0;
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(value(got[i]) - wanted[i]);
    away = std::isnan(difference) ? difference : std::max(away, difference);
    most = std::max(most, std::abs(wanted[i]));
    if (std::isnan(away)) {
      return away;
    }
  }
  return away / most;
}

/// Calls `check(isa, E{})` for every ISA of the machine and every storage.
template <class Check>
void for_all(Check check) {
  for (const Isa isa : kIsas) {
    if (machine_has(isa)) {
      SCOPED_TRACE(text(isa));
      {
        SCOPED_TRACE("float");
        check(isa, float{});
      }
      {
        SCOPED_TRACE("double");
        check(isa, double{});
      }
      {
        SCOPED_TRACE("bf16");
        check(isa, Bf16{});
      }
    }
  }
}

/// The derivative of `loss` by each of `x`, by central differences. The error is of the order
/// of step^2 and 2^-53 / step: some 1e-9 of the loss at a step of 1e-5.
template <class Loss>
std::vector<double> slopes(std::vector<double>& x, Loss loss) {
  constexpr double kStep = 1e-5;
  std::vector<double> all;
  for (double& one : x) {
    const double at = one;
    one = at + kStep;
    const double above = loss();
    one = at - kStep;
    const double below = loss();
    one = at;
    all.push_back((above - below) / (2 * kStep));
  }
  return all;
}
inline constexpr double kSlopeError = 1e-7;

}  // namespace halfwatt::cpu

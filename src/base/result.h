#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace halfwatt {

/// Either a value or an Error; member names follow std::expected, which C++20 lacks.
template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return value;` works
  Result(T value) : state_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return error;` works
  Result(Error error) : state_(std::move(error)) {}

  bool has_value() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  // By value, so that `for (x : *function())` keeps what it walks alive.
  T value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    HALFWATT_CHECK(!has_value(), "error() of a Result that holds a value");
    return *std::get_if<Error>(&state_);
  }

 private:
  T& checked() {
    HALFWATT_CHECK(has_value(), "value() of a Result that holds an error");
    return *std::get_if<T>(&state_);
  }
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return error;` works
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const {
    HALFWATT_CHECK(failed_, "error() of a Result that succeeded");
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace halfwatt

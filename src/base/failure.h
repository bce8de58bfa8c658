#pragma once

#include <exception>
#include <utility>

#include "base/error.h"

namespace halfwatt {

/// An Error as an exception: for misuse of a builder, and for a device that is lost in the
/// middle of a step. Caught once, in cli/main.cpp. What a user can cause by an ordinary mistake
/// is a Result instead.
class Failure final : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

}  // namespace halfwatt

#include "guard/limit_guard.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

namespace halfwatt {
namespace {
// Cards round a limit to whole milliwatts, some to watts.
constexpr Watts kRounding{0.5};
bool same(Watts a, Watts b) { return std::abs((a - b).value()) <= kRounding.value(); }
}  // namespace

Result<LimitGuard> LimitGuard::hold(LimitControl& control) {
  const Result<Watts> found = control.read();
  if (!found) {
    return found.error();
  }
  return LimitGuard(control, *found);
}

LimitGuard::LimitGuard(LimitGuard&& other) noexcept
    : control_(other.control_), found_(other.found_), changed_(other.changed_) {
  other.changed_ = false;
}

LimitGuard::~LimitGuard() {
  if (const Result<void> done = restore(); !done) {
    std::fprintf(stderr, "halfwatt: %s\n", done.error().message.c_str());
  }
}

Result<Watts> LimitGuard::set(Watts limit) {
  changed_ = true;
  if (const Result<void> done = control_->write(limit); !done) {
    return done.error();
  }
  return control_->read();
}

Result<void> LimitGuard::restore() {
  if (!changed_) {
    return {};
  }
  const Result<void> done = control_->write(found_);
  const Result<Watts> now = control_->read();
  if (done && now && same(*now, found_)) {
    changed_ = false;
    return {};
  }
  return Error{ErrorKind::not_restored,
               fmt::format("the power limit could not be put back to {:g} W: {}", found_.value(),
                           !done ? done.error().message
                                 : now ? fmt::format("the card says {:g} W", now->value())
                                       : now.error().message)};
}

}  // namespace halfwatt

#include "guard/scoped_limit_guard.h"

#include <fmt/format.h>

#include "base/remark.h"

namespace halfwatt {

Result<ScopedLimitGuard> ScopedLimitGuard::hold(LimitControl& control) {
  const Result<Watts> found = control.read();
  if (!found) {
    return found.error();
  }
  return ScopedLimitGuard(control, *found);
}

ScopedLimitGuard::ScopedLimitGuard(ScopedLimitGuard&& other) noexcept
    : control_(other.control_),
      found_(other.found_),
      changed_(other.changed_),
      failure_was_told_(other.failure_was_told_) {
  other.changed_ = false;
}

ScopedLimitGuard::~ScopedLimitGuard() {
  const bool told = failure_was_told_;
  if (const Result<void> done = restore(); !done && !told) {
    remark(done.error().message);
  }
}

Result<Watts> ScopedLimitGuard::set(Watts limit) {
  changed_ = true;
  if (const Result<void> done = control_->write(limit); !done) {
    return done.error();
  }
  return control_->read();
}

Result<void> ScopedLimitGuard::restore() {
  if (!changed_) {
    return {};
  }
  const Result<void> done = control_->write(found_);
  const Result<Watts> now = control_->read();
  // What counts is the limit in force: where nobody may set one, none was changed either.
  if (now && same_limit(*now, found_)) {
    changed_ = false;
    return {};
  }
  failure_was_told_ = true;
  return Error{
      ErrorKind::not_restored,
      fmt::format("the power limit could not be put back to {:g} W: {}", found_.value(),
                  !done ? done.error().message
                  : now ? fmt::format("the card says {:g} W", now->value())
                        : now.error().message)};
}

}  // namespace halfwatt

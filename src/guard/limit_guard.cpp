#include "guard/limit_guard.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace halfwatt {
namespace {
// Cards round a limit to whole milliwatts, some to watts.
constexpr Watts kRounding{0.5};
bool same(Watts a, Watts b) { return std::abs((a - b).value()) <= kRounding.value(); }
}  // namespace

Result<Watts> SimulatedLimit::read() {
  const Result<Sample> sample = card_->read();
  if (!sample) {
    return sample.error();
  }
  return Watts(*(*sample)[SignalId::requested_limit]);
}

Result<LimitGuard> LimitGuard::hold(LimitControl& control) {
  const Result<Watts> found = control.read();
  if (!found) {
    return found.error();
  }
  return LimitGuard(control, *found);
}

LimitGuard::LimitGuard(LimitGuard&& other) noexcept
    : control_(other.control_),
      found_(other.found_),
      changed_(other.changed_),
      failure_was_told_(other.failure_was_told_) {
  other.changed_ = false;
}

LimitGuard::~LimitGuard() {
  const bool told = failure_was_told_;
  if (const Result<void> done = restore(); !done && !told) {
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
  // What counts is the limit in force: where nobody may set one, none was changed either.
  if (now && same(*now, found_)) {
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

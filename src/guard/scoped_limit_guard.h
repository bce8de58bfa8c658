#pragma once

#include "guard/limit_control.h"
#include "guard/limit_guard.h"

namespace halfwatt {

/// Holds a limit within this process and puts it back at the end of its scope: enough for a
/// simulated card, which dies with the process. Real cards need a GuardianClient.
class ScopedLimitGuard final : public LimitGuard {
 public:
  /// Reads the limit in force; an error if the card does not tell it.
  static Result<ScopedLimitGuard> hold(LimitControl& control);
  ScopedLimitGuard(ScopedLimitGuard&& other) noexcept;
  ScopedLimitGuard& operator=(ScopedLimitGuard&&) = delete;
  ~ScopedLimitGuard() override;

  Watts found() const override { return found_; }
  Result<Watts> set(Watts limit) override;
  Result<void> restore() override;

 private:
  ScopedLimitGuard(LimitControl& control, Watts found) : control_(&control), found_(found) {}
  LimitControl* control_;
  Watts found_;
  bool changed_ = false;
  bool failure_was_told_ = false;  ///< restore() failed: whoever called it has the message
};

}  // namespace halfwatt

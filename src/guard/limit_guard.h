#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "device/device.h"
#include "device/simulated.h"

namespace halfwatt {

/// How one card's limit is read and written.
class LimitControl {
 public:
  virtual ~LimitControl() = default;
  virtual Result<Watts> read() = 0;
  virtual Result<void> write(Watts limit) = 0;
};

/// The limit of a simulated card.
class SimulatedLimit final : public LimitControl {
 public:
  explicit SimulatedLimit(SimulatedCard& card) : card_(&card) {}
  Result<Watts> read() override;
  Result<void> write(Watts limit) override { return card_->set_limit(limit); }

 private:
  SimulatedCard* card_;
};

/// Holds the limit that was found and puts it back on every way out of its scope.
class LimitGuard {
 public:
  /// Reads the limit in force; an error if the card does not tell it.
  static Result<LimitGuard> hold(LimitControl& control);
  LimitGuard(LimitGuard&& other) noexcept;
  LimitGuard& operator=(LimitGuard&&) = delete;
  ~LimitGuard();

  Watts found() const { return found_; }
  /// Sets `limit` and reads it back: returns what is in force then.
  Result<Watts> set(Watts limit);
  /// Puts the found limit back and proves it by reading; an error of kind not_restored if that
  /// fails. Harmless when nothing was set or all is back already.
  Result<void> restore();

 private:
  LimitGuard(LimitControl& control, Watts found) : control_(&control), found_(found) {}
  LimitControl* control_;
  Watts found_;
  bool changed_ = false;
  bool failure_was_told_ = false;  ///< restore() failed: whoever called it has the message
};

}  // namespace halfwatt

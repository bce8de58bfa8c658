#pragma once

#include "base/result.h"
#include "base/units.h"

namespace halfwatt {

/// What a tuner holds while it changes limits: the one card or several that move together.
class LimitGuard {
 public:
  virtual ~LimitGuard() = default;
  /// The limit that was found; the lowest of them where several cards are held.
  virtual Watts found() const = 0;
  /// Sets `limit` on every card and reads it back: returns what is in force then, the lowest
  /// where cards differ. Errors: one card refused; none is left half way then.
  virtual Result<Watts> set(Watts limit) = 0;
  /// Puts every found limit back and proves it by reading. Errors: not_restored where that
  /// fails, device where somebody else changed a limit meanwhile, which is left alone. Harmless
  /// when nothing was set or all is back already.
  virtual Result<void> restore() = 0;
  /// An error, once, where something happened since the last call that makes a window void
  /// although no reading may show it: whoever watches over the limits died, say.
  virtual Result<void> check() { return {}; }
};

}  // namespace halfwatt

#pragma once

#include "device/simulated.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// The limit of a simulated card.
class SimulatedLimit final : public LimitControl {
 public:
  explicit SimulatedLimit(SimulatedCard& card) : card_(&card) {}
  Result<Watts> read() override;
  Result<void> write(Watts limit) override { return card_->set_limit(limit); }

 private:
  SimulatedCard* card_;
};

}  // namespace halfwatt

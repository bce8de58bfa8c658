#pragma once

#include <vector>

#include "base/clock.h"
#include "device/device.h"

namespace halfwatt {

/// Constants of a made-up card. The recorded study logged neither power nor temperature, so all
/// of them but the limits are invented; docs/simulated.md lists them.
struct CardModel {
  std::string name = "simulated card";
  LimitRange limits{Watts(150), Watts(480), Watts(390)};
  Watts idle{30};
  double meter_gain = 0.97;  ///< what the meters show of the true power
  Seconds energy_tick{0.1};  ///< as measured on Ampere, Ada and Hopper cards
  Celsius ambient{25};
  double kelvin_per_watt = 0.125;  ///< 350 W end at 69 C
  Seconds thermal_time{20};        ///< time constant of the heat sink
};

/// A scripted misfortune between two times; tests use them to prove the rejection rules.
struct Fault {
  enum class Kind {
    set_refused,       ///< no permission to set a limit
    set_ignored,       ///< success is reported and nothing changes
    limit_reverted,    ///< at `from`, somebody sets the preset limit
    counter_reset,     ///< at `from`, the energy counter starts again at zero
    thermal_throttle,  ///< steps take 1 + `amount` times as long, and the card says why
    heating,           ///< ambient temperature is `amount` kelvin higher
    foreign_process,
    lost,  ///< every call that can fail does, and the energy counter is gone
  };
  Kind kind = Kind::set_refused;
  Seconds from{0};
  Seconds to{0};
  double amount = 0;
};

/// A card on a clock, with a power limit, a demand, heat and an energy counter with ticks.
/// It draws min(limit, demand); everything is in closed form between changes, so that hours
/// of virtual time cost nothing.
class SimulatedCard final : public Device {
 public:
  SimulatedCard(DeviceId id,
                CardModel model,
                const Clock& clock,
                std::vector<Fault> faults = {});

  const DeviceInfo& info() const override { return info_; }
  Result<Sample> read() override;
  std::optional<Joules> energy() override;

  /// The limit in force. For guard/ and for the load that runs on the card.
  Watts limit();
  /// Sets the limit; refused outside the range and under the fault set_refused. For guard/
  /// only.
  Result<void> set_limit(Watts limit);
  /// What the running load would draw without a limit; nullopt for an idle card.
  void set_demand(std::optional<Watts> demand);
  /// How much longer a step takes at this moment because the card throttles; 1 for not at all.
  double slowdown();
  Seconds now() const { return clock_->now(); }

 private:
  const Fault* active(Fault::Kind kind) const;
  bool lost() const { return active(Fault::Kind::lost) != nullptr; }
  bool throttles() const { return active(Fault::Kind::thermal_throttle) != nullptr; }
  Watts draw() const;
  Celsius temperature_after(Seconds elapsed) const;
  Error no_answer() const;
  void advance();
  void pass(Seconds until);
  void strike();

  DeviceInfo info_;
  CardModel model_;
  const Clock* clock_;
  std::vector<Fault> faults_;
  std::vector<bool> fired_;
  Watts limit_;
  std::optional<Watts> demand_;
  // State at `since_`, from which everything later is computed in closed form.
  Seconds since_;
  Joules metered_{0};
  Joules metered_at_tick_{0};
  Celsius temperature_;
  Seconds capped_{0};
  Seconds throttled_{0};
};

}  // namespace halfwatt

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fake_nvml/script.h"
#include "fake_nvml/shared_state.h"

namespace halfwatt::fake_nvml {

/// What holds from one event of a card to the next, and what had added up until then.
struct Span {
  std::int64_t start_ns = 0;
  std::uint32_t requested_mw = 0;
  std::uint32_t demand_mw = 0;
  std::uint32_t cap_mw = 0;
  std::uint32_t persistence = 0;
  std::uint32_t extra_reasons = 0;
  double energy_mj = 0;  ///< drawn since the state began, until start_ns
  std::int64_t capped_ns = 0;
  std::int64_t sw_thermal_ns = 0;
  std::int64_t hw_thermal_ns = 0;
  std::int64_t brake_ns = 0;
  std::optional<double> counter_stuck_mj;
  double counter_base_mj = 0;  ///< what the counter said ...
  double counter_zero_mj = 0;  ///< ... when energy_mj was this

  std::uint32_t enforced_mw() const;
  /// What the work wants at start_ns, and what it gets.
  std::uint32_t wanted_mw(const Card& card) const;
  std::uint32_t draw_mw(const Card& card) const;
  bool is_capped(const Card& card) const { return wanted_mw(card) > enforced_mw(); }
  /// This span's state with its sums taken to `time_ns`.
  Span at(std::int64_t time_ns, const Card& card) const;
};

/// Event reasons that a script can raise.
inline constexpr std::uint32_t kReasonSwThermal = 0x20;
inline constexpr std::uint32_t kReasonHwThermal = 0x40;
inline constexpr std::uint32_t kReasonBrake = 0x80;

/// One card's history as one process has read it so far. For one thread at a time.
class History {
 public:
  History(const Card& card, SharedState& state, std::size_t index);

  /// Reads what others added, and makes what is due by now happen.
  void catch_up(std::int64_t now_ns);
  /// The card as it was at `time_ns`; before the state began it ran on as at its beginning.
  Span at(std::int64_t time_ns) const;
  /// Appends `event` at the time it happens to be then.
  void append(Event event);

  const std::vector<Event>& events() const { return events_; }
  /// What the energy counter says at `time_ns`.
  double counter_mj(std::int64_t time_ns) const;

 private:
  void read_published();
  void apply(const Event& event);
  std::optional<Event> due(std::int64_t now_ns) const;

  const Card* card_;
  SharedState* state_;
  std::size_t index_;
  std::vector<Event> events_;
  std::vector<Span> spans_;         ///< one more than events that had an effect
  std::size_t next_happening_ = 0;  ///< how many of the script's events are in the history
  std::vector<Event> script_events_;
  std::optional<Event> revert_;  ///< what the last set will be taken back to
};

/// The single events of a happening, in the order of its keys.
std::vector<Event> events_of(const Happening& happening);

}  // namespace halfwatt::fake_nvml

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace halfwatt {

/// What a unit measures.
enum class Dimension { power, time, energy, frequency, temperature, memory, share };

/// A unit as column names end in it.
struct Unit {
  std::string_view word;
  Dimension dimension;
  double times;              ///< to watts, seconds, joules, megahertz, celsius, bytes, percent;
  double over;               ///< a divisor, since x / 1000 rounds once and x * 0.001 twice
  std::string_view example;  ///< "milliseconds such as 12.5"

  double base(double value) const { return value * times / over; }
};

/// The unit called `word`, in any case; nullptr where there is none.
const Unit* unit_called(std::string_view word);

/// What a column is for.
enum class ColumnRole {
  limit,        ///< the power limit
  limit_share,  ///< a power limit in percent of something that the file does not tell
  set_clock,    ///< a core clock that somebody set
  sm_clock,     ///< a core clock, set or seen
  mem_clock,    ///< a memory clock, set or seen
  time,         ///< how long some work took
  rate,         ///< how much work a second
  energy,
  power,        ///< average draw
  batch,        ///< items of one step; a label too
  device,       ///< name of the card
  state,        ///< numerical state
  observation,  ///< seen while measuring, or a count of repeats
  label,        ///< splits series
  provenance,   ///< where a row comes from
};

/// The work that one time or one energy is for.
enum class Per { unsaid, step, epoch, window, item };

/// Which of the Conditions an observation is.
enum class Observed {
  nothing,
  sm_clock,
  memory_clock,
  temperature_start,
  temperature_end,
  fan,
  memory
};

/// What a column's name tells.
struct ColumnMeaning {
  ColumnRole role = ColumnRole::label;
  const Unit* unit = nullptr;  ///< of its numbers; of a rate: the time
  Per per = Per::unsaid;       ///< the work that one value is for
  std::string_view item = {};  ///< "token" where `per` is item
  Observed observed = Observed::nothing;
};

/// The meaning of a column by its name alone; nullopt for a name that means nothing here.
std::optional<ColumnMeaning> meaning_of(std::string_view name);

/// The meaning of a time or rate with something more behind its name, such as
/// `tokens_per_s_code` or `ms_per_batch_p99`; nullopt for everything else.
std::optional<ColumnMeaning> variant_of(std::string_view name);

/// A time or rate whose unit the user gave: "ms", or "images/s".
std::optional<ColumnMeaning> performance_in(std::string_view unit);

/// "milliseconds such as 12.5", "tokens per second such as 120": what a cell must hold.
std::string needed_in(const ColumnMeaning& meaning);

/// Rank of a batch column where there are several: the lowest says how many items a step has.
int batch_rank(std::string_view name);
/// Rank of a device column where there are several: the lowest names the card.
int device_rank(std::string_view name);

}  // namespace halfwatt

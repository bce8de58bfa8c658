#include "tune/import_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tune/labels.h"

namespace halfwatt {
namespace {

// "min" is left out: power_min and time_min are minima as often as minutes.
constexpr Unit kUnits[] = {
    {"w", Dimension::power, 1, 1, "watts such as 300"},
    {"watt", Dimension::power, 1, 1, "watts such as 300"},
    {"watts", Dimension::power, 1, 1, "watts such as 300"},
    {"mw", Dimension::power, 1, 1e3, "milliwatts such as 300000"},
    {"kw", Dimension::power, 1e3, 1, "kilowatts such as 0.3"},
    {"s", Dimension::time, 1, 1, "seconds such as 0.35"},
    {"sec", Dimension::time, 1, 1, "seconds such as 0.35"},
    {"second", Dimension::time, 1, 1, "seconds such as 0.35"},
    {"seconds", Dimension::time, 1, 1, "seconds such as 0.35"},
    {"ms", Dimension::time, 1, 1e3, "milliseconds such as 12.5"},
    {"milliseconds", Dimension::time, 1, 1e3, "milliseconds such as 12.5"},
    {"us", Dimension::time, 1, 1e6, "microseconds such as 850"},
    {"ns", Dimension::time, 1, 1e9, "nanoseconds such as 850000"},
    {"h", Dimension::time, 3600, 1, "hours such as 1.5"},
    {"j", Dimension::energy, 1, 1, "joules such as 105"},
    {"joule", Dimension::energy, 1, 1, "joules such as 105"},
    {"joules", Dimension::energy, 1, 1, "joules such as 105"},
    {"mj", Dimension::energy, 1, 1e3, "millijoules such as 105000"},
    {"kj", Dimension::energy, 1e3, 1, "kilojoules such as 2.9"},
    {"wh", Dimension::energy, 3600, 1, "watt-hours such as 0.8"},
    {"kwh", Dimension::energy, 3.6e6, 1, "kilowatt-hours such as 0.8"},
    {"mhz", Dimension::frequency, 1, 1, "megahertz such as 1410"},
    {"ghz", Dimension::frequency, 1e3, 1, "gigahertz such as 1.41"},
    {"khz", Dimension::frequency, 1, 1e3, "kilohertz such as 1410000"},
    {"hz", Dimension::frequency, 1, 1e6, "hertz such as 1410000000"},
    {"c", Dimension::temperature, 1, 1, "degrees Celsius such as 65"},
    {"celsius", Dimension::temperature, 1, 1, "degrees Celsius such as 65"},
    {"bytes", Dimension::memory, 1, 1, "bytes such as 9640000000"},
    {"kib", Dimension::memory, 1024, 1, "KiB such as 9870000"},
    {"mib", Dimension::memory, 1048576, 1, "MiB such as 9640"},
    {"gib", Dimension::memory, 1073741824, 1, "GiB such as 9.6"},
    {"mb", Dimension::memory, 1e6, 1, "MB such as 9640"},
    {"gb", Dimension::memory, 1e9, 1, "GB such as 9.6"},
    {"percent", Dimension::share, 1, 1, "percent such as 60"},
    {"pct", Dimension::share, 1, 1, "percent such as 60"},
};

/// What can be counted: the words for one and for many of it, and what it is called here.
struct Noun {
  std::string_view one;
  std::string_view many;
  Per per;
  std::string_view item;
};

constexpr Noun kNouns[] = {
    {"step", "steps", Per::step, ""},
    {"batch", "batches", Per::step, ""},
    {"iteration", "iterations", Per::step, ""},
    {"iter", "iters", Per::step, ""},
    {"it", "its", Per::step, ""},
    {"epoch", "epochs", Per::epoch, ""},
    {"window", "windows", Per::window, ""},
    {"item", "items", Per::item, "item"},
    {"image", "images", Per::item, "image"},
    {"img", "imgs", Per::item, "image"},
    {"sample", "samples", Per::item, "sample"},
    {"example", "examples", Per::item, "example"},
    {"token", "tokens", Per::item, "token"},
    {"tok", "toks", Per::item, "token"},
    {"frame", "frames", Per::item, "frame"},
    {"sequence", "sequences", Per::item, "sequence"},
    {"request", "requests", Per::item, "request"},
    {"req", "reqs", Per::item, "request"},
};

/// A name that a unit may follow.
struct Stem {
  std::string_view name;
  Dimension dimension;
  std::string_view assumed;  ///< unit where the name ends without one; empty: it must have one
  ColumnRole role;
  Observed observed = Observed::nothing;
};

using enum ColumnRole;
constexpr Stem kStems[] = {
    {"power_limit", Dimension::power, "w", limit},
    {"power_cap", Dimension::power, "w", limit},
    {"powerlimit", Dimension::power, "w", limit},
    {"gpu_power_limit", Dimension::power, "w", limit},
    {"nvml_pwr_limit", Dimension::power, "w", limit},
    {"pl", Dimension::power, "w", limit},
    {"power", Dimension::power, "w", power},
    {"avg_power", Dimension::power, "w", power},
    {"average_power", Dimension::power, "w", power},
    {"mean_power", Dimension::power, "w", power},
    {"power_avg", Dimension::power, "w", power},
    {"power_draw", Dimension::power, "w", power},
    {"draw", Dimension::power, "w", power},
    {"avg_draw", Dimension::power, "w", power},
    {"measured_power", Dimension::power, "w", power},
    {"gpu_power", Dimension::power, "w", power},
    {"time", Dimension::time, "", time},
    {"latency", Dimension::time, "", time},
    {"runtime", Dimension::time, "", time},
    {"duration", Dimension::time, "", observation},
    {"elapsed", Dimension::time, "", observation},
    {"energy", Dimension::energy, "", energy},
    {"energy_total", Dimension::energy, "", energy},
    {"total_energy", Dimension::energy, "", energy},
    {"gpu_energy", Dimension::energy, "", energy},
    {"set_gr_clock", Dimension::frequency, "mhz", set_clock},
    {"set_sm_clock", Dimension::frequency, "mhz", set_clock},
    {"set_core_clock", Dimension::frequency, "mhz", set_clock},
    {"set_gpu_clock", Dimension::frequency, "mhz", set_clock},
    {"set_clock", Dimension::frequency, "mhz", set_clock},
    {"locked_clock", Dimension::frequency, "mhz", set_clock},
    {"clock_lock", Dimension::frequency, "mhz", set_clock},
    {"sm_clock_lock", Dimension::frequency, "mhz", set_clock},
    {"nvml_gr_clock", Dimension::frequency, "mhz", set_clock},
    {"sm_clock", Dimension::frequency, "mhz", sm_clock},
    {"gr_clock", Dimension::frequency, "mhz", sm_clock},
    {"graphics_clock", Dimension::frequency, "mhz", sm_clock},
    {"core_clock", Dimension::frequency, "mhz", sm_clock},
    {"gpu_clock", Dimension::frequency, "mhz", sm_clock},
    {"core_freq", Dimension::frequency, "mhz", sm_clock},
    {"sm_freq", Dimension::frequency, "mhz", sm_clock},
    {"mem_clock", Dimension::frequency, "mhz", mem_clock},
    {"memory_clock", Dimension::frequency, "mhz", mem_clock},
    {"set_mem_clock", Dimension::frequency, "mhz", mem_clock},
    {"nvml_mem_clock", Dimension::frequency, "mhz", mem_clock},
    {"measured_sm_clock", Dimension::frequency, "mhz", observation, Observed::sm_clock},
    {"measured_gr_clock", Dimension::frequency, "mhz", observation, Observed::sm_clock},
    {"measured_core_freq", Dimension::frequency, "mhz", observation, Observed::sm_clock},
    {"avg_sm_clock", Dimension::frequency, "mhz", observation, Observed::sm_clock},
    {"measured_mem_clock", Dimension::frequency, "mhz", observation, Observed::memory_clock},
    {"avg_mem_clock", Dimension::frequency, "mhz", observation, Observed::memory_clock},
    {"temperature", Dimension::temperature, "c", observation, Observed::temperature_end},
    {"temp", Dimension::temperature, "c", observation, Observed::temperature_end},
    {"gpu_temp", Dimension::temperature, "c", observation, Observed::temperature_end},
    {"gpu_temperature", Dimension::temperature, "c", observation, Observed::temperature_end},
    {"temperature_end", Dimension::temperature, "c", observation, Observed::temperature_end},
    {"temperature_start", Dimension::temperature, "c", observation,
     Observed::temperature_start},
    {"fan", Dimension::share, "percent", observation, Observed::fan},
    {"fan_speed", Dimension::share, "percent", observation, Observed::fan},
    {"memory", Dimension::memory, "", observation, Observed::memory},
    {"memory_used", Dimension::memory, "", observation, Observed::memory},
    {"mem_used", Dimension::memory, "", observation, Observed::memory},
    {"gpu_memory", Dimension::memory, "", observation, Observed::memory},
    {"peak_memory", Dimension::memory, "", observation, Observed::memory},
};

/// A name that is known whole.
struct Word {
  std::string_view name;
  ColumnRole role;
};

constexpr Word kWords[] = {
    {"gpu", device},
    {"gpu_name", device},
    {"card", device},
    {"device", device},
    {"device_name", device},
    {"accelerator", device},
    {"items_per_step", batch},
    {"items_per_batch", batch},
    {"global_batch_size", batch},
    {"global_batch", batch},
    {"batch", batch},
    {"batch_size", batch},
    {"batchsize", batch},
    {"bs", batch},
    {"numerical_state", state},
    {"workload", label},
    {"mode", label},
    {"model", label},
    {"network", label},
    {"task", label},
    {"phase", label},
    {"scenario", label},
    {"kernel", label},
    {"dataset", label},
    {"optimizer", label},
    {"host", label},
    {"machine", label},
    {"driver", label},
    {"n_gpus", label},
    {"num_gpus", label},
    {"gpus", label},
    {"concurrency", label},
    {"streams", label},
    {"context", label},
    {"seq_len", label},
    {"sequence_length", label},
    {"resolution", label},
    {"image_size", label},
    {"source_file", provenance},
    {"source", provenance},
    {"file", provenance},
    {"path", provenance},
    {"url", provenance},
    {"script", provenance},
    {"log", provenance},
    {"commit", provenance},
    {"comment", provenance},
    {"comments", provenance},
    {"note", provenance},
    {"notes", provenance},
    {"remark", provenance},
    {"remarks", provenance},
    {"run", observation},
    {"repeat", observation},
    {"repetition", observation},
    {"trial", observation},
    {"seed", observation},
    {"index", observation},
    {"row", observation},
    {"id", observation},
    {"timestamp", observation},
    {"date", observation},
    {"steps", observation},
    {"n_steps", observation},
    {"iterations", observation},
};

/// Names that are a unit and say enough: `seconds`, not `s`.
constexpr std::string_view kBareUnits[] = {"watts", "joules", "seconds", "milliseconds"};

const Noun* noun_called(std::string_view word) {
  const auto found = std::ranges::find_if(
      kNouns, [word](const Noun& noun) { return word == noun.one || word == noun.many; });
  return found == std::end(kNouns) ? nullptr : &*found;
}

const Unit* unit_of(std::string_view word, Dimension dimension) {
  const Unit* unit = unit_called(word);
  return unit != nullptr && unit->dimension == dimension ? unit : nullptr;
}

ColumnMeaning counted(ColumnRole role, const Unit* unit, const Noun& noun) {
  return {role, unit, noun.per, noun.item};
}

/// `power_limit_w`, `avg_power`, `time_ms`.
std::optional<ColumnMeaning> by_stem(std::string_view name) {
  for (const Stem& stem : kStems) {
    if (!name.starts_with(stem.name)) {
      continue;
    }
    std::string_view rest = name.substr(stem.name.size());
    if (rest.empty() && !stem.assumed.empty()) {
      return ColumnMeaning{stem.role, unit_called(stem.assumed), Per::unsaid, "",
                           stem.observed};
    }
    if (!rest.starts_with('_')) {
      continue;
    }
    rest.remove_prefix(1);
    if (const Unit* unit = unit_of(rest, stem.dimension)) {
      return ColumnMeaning{stem.role, unit, Per::unsaid, "", stem.observed};
    }
    if (const Unit* share = unit_of(rest, Dimension::share); share && stem.role == limit) {
      return ColumnMeaning{limit_share, share};
    }
  }
  return std::nullopt;
}

/// `ms_per_batch`, `j_per_token`, `tokens_per_s`, `time_per_epoch_s`, `energy_per_step_j`.
std::optional<ColumnMeaning> by_ratio(std::string_view name) {
  constexpr std::string_view kPer = "_per_";
  const std::size_t split = name.find(kPer);
  if (split == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view left = name.substr(0, split);
  const std::string_view right = name.substr(split + kPer.size());
  if (const Unit* unit = unit_of(right, Dimension::time)) {
    if (const Noun* noun = noun_called(left)) {
      return counted(rate, unit, *noun);
    }
    return std::nullopt;
  }
  if (const Noun* noun = noun_called(right)) {
    const Unit* unit = unit_called(left);
    if (unit != nullptr && unit->dimension == Dimension::time) {
      return counted(time, unit, *noun);
    }
    if (unit != nullptr && unit->dimension == Dimension::energy) {
      return counted(energy, unit, *noun);
    }
    return std::nullopt;
  }
  const std::size_t last = right.rfind('_');
  if (last == std::string_view::npos || (left != "time" && left != "energy")) {
    return std::nullopt;
  }
  const ColumnRole role = left == "time" ? time : energy;
  const Unit* unit =
      unit_of(right.substr(last + 1), role == time ? Dimension::time : Dimension::energy);
  const Noun* noun = noun_called(right.substr(0, last));
  if (unit == nullptr || noun == nullptr) {
    return std::nullopt;
  }
  return counted(role, unit, *noun);
}

/// `step_ms`, `batch_time_ms`, `window_time_s`; `tokens_s` is too unclear.
std::optional<ColumnMeaning> by_event(std::string_view name) {
  const std::size_t last = name.rfind('_');
  if (last == std::string_view::npos) {
    return std::nullopt;
  }
  const Unit* unit = unit_of(name.substr(last + 1), Dimension::time);
  std::string_view event = name.substr(0, last);
  if (event.ends_with("_time")) {
    event.remove_suffix(5);
  }
  const Noun* noun = noun_called(event);
  if (unit == nullptr || noun == nullptr || event != noun->one) {
    return std::nullopt;
  }
  return counted(time, unit, *noun);
}

std::optional<ColumnMeaning> meaning_of_plain(std::string_view name) {
  if (const auto word = std::ranges::find(kWords, name, &Word::name);
      word != std::end(kWords)) {
    return ColumnMeaning{word->role};
  }
  if (std::ranges::find(kBareUnits, name) != std::end(kBareUnits)) {
    const Unit* unit = unit_called(name);
    const bool is_time = unit->dimension == Dimension::time;
    return ColumnMeaning{is_time                                ? time
                         : unit->dimension == Dimension::energy ? energy
                                                                : power,
                         unit};
  }
  if (name == "throughput") {
    return ColumnMeaning{rate, unit_called("s"), Per::item, "item"};
  }
  if (name == "fps") {
    return ColumnMeaning{rate, unit_called("s"), Per::item, "frame"};
  }
  if (const auto meaning = by_ratio(name)) {
    return meaning;
  }
  if (const auto meaning = by_stem(name)) {
    return meaning;
  }
  if (const auto meaning = by_event(name)) {
    return meaning;
  }
  if (name.starts_with("throughput_")) {
    return by_ratio(name.substr(std::string_view("throughput_").size()));
  }
  return std::nullopt;
}

template <class Words>
int rank(const Words& words, ColumnRole role, std::string_view name) {
  int rank = 0;
  for (const Word& word : words) {
    if (word.role == role && word.name == name) {
      return rank;
    }
    ++rank;
  }
  return rank;
}

}  // namespace

const Unit* unit_called(std::string_view word) {
  const std::string plain = plain_name(word);
  const auto found = std::ranges::find(kUnits, plain, &Unit::word);
  return found == std::end(kUnits) ? nullptr : &*found;
}

std::optional<ColumnMeaning> meaning_of(std::string_view name) {
  const std::string plain = plain_name(name);
  if (const auto meaning = meaning_of_plain(plain)) {
    return meaning;
  }
  if (is_knob_label(plain)) {
    return ColumnMeaning{label};
  }
  return std::nullopt;
}

std::optional<ColumnMeaning> variant_of(std::string_view name) {
  const std::string plain = plain_name(name);
  std::string_view start = plain;
  for (auto end = start.rfind('_'); end != std::string_view::npos; end = start.rfind('_')) {
    start = start.substr(0, end);
    const bool says_enough = start.find('_') != std::string_view::npos || start == "throughput";
    const auto meaning = meaning_of_plain(start);
    if (meaning && (meaning->role == time || meaning->role == rate)) {
      return says_enough ? meaning : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<ColumnMeaning> performance_in(std::string_view unit) {
  if (const Unit* single = unit_of(unit, Dimension::time)) {
    return ColumnMeaning{time, single};
  }
  const std::string plain = plain_name(unit);
  const auto meaning = by_ratio(plain);
  return meaning && (meaning->role == time || meaning->role == rate) ? meaning : std::nullopt;
}

std::string needed_in(const ColumnMeaning& meaning) {
  if (meaning.role == rate) {
    const std::string_view item = meaning.per == Per::step     ? "step"
                                  : meaning.per == Per::epoch  ? "epoch"
                                  : meaning.per == Per::window ? "window"
                                                               : meaning.item;
    return fmt::format("{}s per {} such as 120", item, meaning.unit->word);
  }
  return meaning.unit != nullptr ? std::string(meaning.unit->example) : "a number";
}

int batch_rank(std::string_view name) { return rank(kWords, batch, plain_name(name)); }
int device_rank(std::string_view name) { return rank(kWords, device, plain_name(name)); }

}  // namespace halfwatt

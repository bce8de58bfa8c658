#include "tune/import_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "tune/csv.h"
#include "tune/csv_bytes.h"
#include "tune/import_notes.h"
#include "tune/import_plan.h"

namespace halfwatt {
namespace {

constexpr std::size_t kQuotedBytes = 40;
constexpr std::size_t kNotesBytes = std::size_t{1} << 20U;

// No card is capped above this (a B300 takes 1,400 W), and 5 W in milliwatts is above it.
constexpr double kHighestLimitW = 5000;
constexpr double kLowestLimitW = 1;
// Bounds of an average draw, per card or per machine: 8 cards of a DGX B200 draw 8 kW; 20 W in
// milliwatts and 1 kW in kilowatts are outside.
constexpr double kHighestDrawW = 20'000;
constexpr double kLowestDrawW = 1;
// Of a step: beyond a clock cycle and thirty years something else was meant.
constexpr double kShortestS = 1e-9;
constexpr double kLongestS = 1e9;
constexpr double kMostItems = 1e9;
// Of any knob, so that ratios and logarithms of two of its values stay finite.
constexpr double kSmallestKnob = 1e-12;
constexpr double kLargestKnob = 1e12;
constexpr double kLargestObserved = 1e18;  // bytes of memory are the largest
// Figures given to five digits agree this well when one was computed from the other.
constexpr double kComputedFrom = 1e-3;
// Sensors of one card disagree by less than this (power readings are 2 to 8 % off a meter).
constexpr double kDisagreement = 0.1;

bool is_missing(std::string_view cell) {
  return cell.empty() || cell == "-" || cell == "N/A" || cell == "[N/A]" || cell == "n/a";
}

/// Turns the rows of one table into series.
class Importer {
 public:
  Importer(const CsvTable& table,
           ColumnPlan plan,
           const ImportNotes& notes,
           const ImportOptions& options)
      : table_(table), plan_(std::move(plan)), notes_(notes) {
    item_ = one_line(options.items.empty() ? notes.item : options.items, kQuotedBytes);
  }

  Result<Imported> import() {
    if (auto done = name_the_item(); !done) {
      return done.error();
    }
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (auto done = import_row(row); !done) {
        return done.error();
      }
    }
    settle_energy_method();
    if (auto done = apply_notes(); !done) {
      return done.error();
    }
    for (const std::string& text : plan_.remarks) {
      remark(text);
    }
    remark_on_repeats();
    imported_.source = notes_.source;
    imported_.terms = notes_.terms;
    return std::move(imported_);
  }

 private:
  void remark(std::string_view text) {
    imported_.remarks.push_back(fmt::format("{}: {}", one_line(table_.file()), text));
  }

  /// What one step of the chosen column yields, in `item_`, and whether the batch says how
  /// many.
  Result<void> name_the_item() {
    const ColumnMeaning& y = plan_.y.meaning;
    const bool steps = y.per == Per::step || y.per == Per::unsaid;
    by_batch_ = steps && plan_.batch.has_value();
    if (y.per == Per::item) {
      item_ = item_.empty() ? std::string(y.item) : item_;
    } else if (by_batch_) {
      item_ = item_.empty() ? "item" : item_;
    } else if (!item_.empty()) {
      return table_.header_error(
          fmt::format("a {} holds an unknown number of {}s: needed a batch "
                      "column, or no item name (--items)",
                      event(), one_line(item_, kQuotedBytes)));
    } else {
      item_ = event();
    }
    return {};
  }

  std::string event() const {
    const Per per = plan_.y.meaning.per;
    return per == Per::epoch ? "epoch" : per == Per::window ? "window" : "step";
  }

  Result<void> import_row(std::size_t row) {
    Measurement measurement;
    if (auto x = read_knob(row); x) {
      measurement.setting.set(plan_.knob.name, *x);
      if (plan_.knob == power_limit_knob()) {
        measurement.conditions.requested_limit = Watts(*x);
      }
    } else {
      return x.error();
    }
    for (const auto read :
         {&Importer::read_work, &Importer::read_energy, &Importer::read_state}) {
      if (auto done = (this->*read)(row, measurement); !done) {
        return done;
      }
    }
    for (const PlannedColumn& column : plan_.observations) {
      if (auto done = read_observation(row, column, measurement.conditions); !done) {
        return done;
      }
    }
    append(row, std::move(measurement));
    return {};
  }

  Result<double> read_knob(std::size_t row) const {
    const auto& [column, meaning] = plan_.x;
    const std::string needed =
        meaning.unit != nullptr ? std::string(meaning.unit->example) : "a number above zero";
    const auto cell = table_.positive(row, column, needed);
    if (!cell) {
      return cell.error();
    }
    const double value = meaning.unit != nullptr ? meaning.unit->base(*cell) : *cell;
    if (value < kSmallestKnob || value > kLargestKnob) {
      return beyond_belief(row, column, needed);
    }
    if (plan_.knob != power_limit_knob() || plan_.x_unit_given) {
      return value;
    }
    const bool low = value < kLowestLimitW;
    if (low || value > kHighestLimitW) {
      return table_.error(
          row, column,
          fmt::format("'{}' looks like {}; needed {} (or say the unit: --x {}=UNIT)",
                      one_line(table_.cell(row, column), kQuotedBytes),
                      low ? "kilowatts or a share" : "milliwatts", needed,
                      one_line(table_.name(column), kQuotedBytes)));
    }
    return value;
  }

  Error beyond_belief(std::size_t row, std::size_t column, std::string_view needed) const {
    return table_.error(row, column,
                        fmt::format("'{}' is beyond belief; needed {}",
                                    one_line(table_.cell(row, column), kQuotedBytes), needed));
  }

  Result<void> read_work(std::size_t row, Measurement& measurement) {
    const auto& [column, meaning] = plan_.y;
    const auto cell = table_.positive(row, column, needed_in(meaning));
    if (!cell) {
      return cell.error();
    }
    const double seconds = meaning.role == ColumnRole::rate ? meaning.unit->base(1) / *cell
                                                            : meaning.unit->base(*cell);
    if (seconds < kShortestS || seconds > kLongestS) {
      return beyond_belief(row, column, needed_in(meaning));
    }
    Work& work = measurement.work;
    work.steps = 1;
    work.duration = Seconds(seconds);
    work.step_time = work.duration;
    work.unit = item_;
    return by_batch_ ? read_batch(row, work) : Result<void>();
  }

  Result<void> read_batch(std::size_t row, Work& work) const {
    constexpr std::string_view kNeeded = "items of one step such as 160";
    const auto items = table_.positive(row, *plan_.batch, kNeeded);
    if (!items) {
      return items.error();
    }
    if (*items != std::floor(*items) || *items > kMostItems) {
      return table_.error(
          row, *plan_.batch,
          fmt::format("'{}' is no count; needed {}",
                      one_line(table_.cell(row, *plan_.batch), kQuotedBytes), kNeeded));
    }
    work.items_per_step = *items;
    return {};
  }

  /// The value of an optional column in its base unit; nullopt where the cell tells nothing.
  Result<std::optional<double>> read_optional(
      std::size_t row, const std::optional<PlannedColumn>& column) const {
    if (!column || is_missing(table_.cell(row, column->column))) {
      return std::optional<double>();
    }
    const auto cell = table_.positive(row, column->column, column->meaning.unit->example);
    if (!cell) {
      return cell.error();
    }
    return std::optional(column->meaning.unit->base(*cell));
  }

  Result<void> read_energy(std::size_t row, Measurement& measurement) {
    const auto joules = read_optional(row, plan_.energy);
    const auto watts = read_optional(row, plan_.power);
    if (!joules || !watts) {
      return !joules ? joules.error() : watts.error();
    }
    const Work& work = measurement.work;
    std::optional<Joules> energy;
    if (*joules) {
      const bool of_item = plan_.energy->meaning.per == Per::item;
      energy = Joules(**joules * (of_item ? work.items_per_step : 1));
      if (auto done = check_draw(row, *plan_.energy, *energy / work.duration); !done) {
        return done;
      }
    }
    if (*watts) {
      if (auto done = check_draw(row, *plan_.power, Watts(**watts)); !done) {
        return done;
      }
      const Joules product = Watts(**watts) * work.duration;
      if (energy) {
        compare(row, *energy, product);
      } else {
        measurement.energy.method = EnergyMethod::average_power;
      }
      energy = energy.value_or(product);
    }
    if (*joules) {
      // A table cannot prove that a counter was read; the sidecar may say so.
      measurement.energy.method = notes_.energy_method.value_or(EnergyMethod::power_integral);
    }
    measurement.energy.value = energy;
    return {};
  }

  Result<void> check_draw(std::size_t row, const PlannedColumn& column, Watts draw) const {
    const bool low = draw.value() < kLowestDrawW;
    if (!low && draw.value() <= kHighestDrawW) {
      return {};
    }
    const bool energy = column.meaning.role == ColumnRole::energy;
    return table_.error(row, column.column,
                        fmt::format("'{}' {} {:.3g} W: {}{}?",
                                    one_line(table_.cell(row, column.column), kQuotedBytes),
                                    energy ? "over that time is" : "is", draw.value(),
                                    low ? "kilo" : "milli", energy ? "joules" : "watts"));
  }

  void compare(std::size_t row, Joules energy, Joules product) {
    const double difference = std::abs(product / energy - 1);
    ++compared_;
    computed_ += difference <= kComputedFrom ? 1 : 0;
    if (difference > worst_difference_) {
      worst_difference_ = difference;
      worst_row_ = row;
    }
  }

  /// Energy that is power times time in every row tells nothing that the power does not.
  void settle_energy_method() {
    if (compared_ > 0 && computed_ == compared_ && !notes_.energy_method) {
      for (Series& series : imported_.series) {
        for (Measurement& measurement : series.measurements) {
          if (measurement.energy.value) {
            measurement.energy.method = EnergyMethod::average_power;
          }
        }
      }
    }
    if (worst_difference_ > kDisagreement) {
      remark(
          fmt::format("energy and power times time differ by up to {:.0f} % (line {}); the "
                      "energy is used",
                      worst_difference_ * 100, table_.line(worst_row_)));
    }
  }

  Result<void> read_state(std::size_t row, Measurement& measurement) {
    if (!plan_.state || is_missing(table_.cell(row, *plan_.state))) {
      return {};
    }
    const std::string_view cell = table_.cell(row, *plan_.state);
    const auto state = numerical_state(cell);
    if (!state) {
      return table_.error(
          row, *plan_.state,
          fmt::format("'{}' is no numerical state; needed live, skipping, stalled, dead or "
                      "unknown",
                      one_line(cell, kQuotedBytes)));
    }
    measurement.numerical_state = *state;
    return {};
  }

  Result<void> read_observation(std::size_t row,
                                const PlannedColumn& column,
                                Conditions& conditions) const {
    const std::string_view cell = table_.cell(row, column.column);
    if (is_missing(cell)) {
      return {};
    }
    const auto number = parse_number(cell);
    if (!number || !(*number >= 0 && *number <= kLargestObserved)) {
      return table_.error(row, column.column,
                          fmt::format("'{}' is not a number of zero or more; needed {}",
                                      one_line(cell, kQuotedBytes), needed_in(column.meaning)));
    }
    const double value = column.meaning.unit->base(*number);
    switch (column.meaning.observed) {
      case Observed::sm_clock:
        conditions.sm_clock = Megahertz(value);
        break;
      case Observed::memory_clock:
        conditions.memory_clock = Megahertz(value);
        break;
      case Observed::temperature_start:
        conditions.temperature_start = Celsius(value);
        break;
      case Observed::temperature_end:
        conditions.temperature_end = Celsius(value);
        break;
      case Observed::fan:
        conditions.fan_percent = value;
        break;
      case Observed::memory:
        conditions.memory_used = Bytes(value);
        break;
      case Observed::nothing:
        break;
    }
    return {};
  }

  void append(std::size_t row, Measurement measurement) {
    std::string key;
    for (const std::size_t column : plan_.labels) {
      key += one_line(table_.cell(row, column)) + '\n';  // which one_line() leaves in none
    }
    const auto [entry, is_new] = series_by_key_.try_emplace(key, imported_.series.size());
    if (is_new) {
      imported_.series.push_back(new_series(row));
    }
    Series& series = imported_.series[entry->second];
    const double x = *measurement.setting.number(plan_.knob.name);
    const auto [first, is_first] = first_rows_.try_emplace({entry->second, x}, row);
    if (!is_first) {
      repeats_ += 1;
      repeated_ = repeated_.value_or(std::pair(first->second, row));
    }
    measurement.started = Seconds(static_cast<double>(series.measurements.size()));
    series.measurements.push_back(std::move(measurement));
  }

  Series new_series(std::size_t row) const {
    Series series;
    for (const std::size_t column : plan_.labels) {
      if (const auto cell = table_.cell(row, column); !cell.empty()) {
        series.labels.emplace_back(one_line(table_.name(column)), one_line(cell));
      }
    }
    const auto device = plan_.device ? table_.cell(row, *plan_.device) : std::string_view();
    series.device = device.empty() ? "unknown" : one_line(device);
    series.knob = plan_.knob;
    series.provenance = Provenance::recorded;
    series.source = table_.file();
    return series;
  }

  Result<void> apply_notes() {
    if (!plan_.device && notes_.devices.size() > 1) {
      return table_.header_error("the notes name several devices; needed a gpu column");
    }
    for (Series& series : imported_.series) {
      if (!plan_.device && !notes_.devices.empty()) {
        series.device = notes_.devices.front().name;
      }
      const auto noted = std::ranges::find(notes_.devices, series.device, &NotedDevice::name);
      if (noted != notes_.devices.end() && plan_.knob == power_limit_knob()) {
        series.limits = noted->limits;
      }
    }
    for (const NotedSeries& noted : notes_.series) {
      if (!apply(noted)) {
        return table_.header_error(
            fmt::format("the notes are about a series '{}' that is not in the file",
                        one_line(halfwatt::text(noted.match), kQuotedBytes)));
      }
    }
    return {};
  }

  bool apply(const NotedSeries& noted) {
    bool applied = false;
    for (Series& series : imported_.series) {
      const bool matches = std::ranges::all_of(noted.match, [&series](const auto& pair) {
        return label(series.labels, pair.first) == pair.second;
      });
      if (!matches) {
        continue;
      }
      applied = true;
      series.remark = noted.source.empty() ? noted.reason
                                           : fmt::format("{} ({})", noted.reason, noted.source);
      for (Measurement& measurement : series.measurements) {
        measurement.numerical_state = noted.numerical_state;
      }
    }
    return applied;
  }

  void remark_on_repeats() {
    if (repeated_) {
      remark(
          fmt::format("{} row{} repeat{} a {} of the same series (first: lines {} and {}); "
                      "taken as repeated measurements",
                      repeats_, repeats_ == 1 ? "" : "s", repeats_ == 1 ? "s" : "",
                      one_line(table_.name(plan_.x.column), kQuotedBytes),
                      table_.line(repeated_->first), table_.line(repeated_->second)));
    }
  }

  const CsvTable& table_;
  ColumnPlan plan_;
  const ImportNotes& notes_;
  std::string item_;
  bool by_batch_ = false;
  Imported imported_;
  std::unordered_map<std::string, std::size_t> series_by_key_;
  std::map<std::pair<std::size_t, double>, std::size_t> first_rows_;
  std::size_t repeats_ = 0;
  std::optional<std::pair<std::size_t, std::size_t>> repeated_;  ///< the first two such rows
  std::size_t compared_ = 0;  ///< rows with both energy and power
  std::size_t computed_ = 0;  ///< of these, where one was computed from the other
  double worst_difference_ = 0;
  std::size_t worst_row_ = 0;
};

}  // namespace

Result<Imported> import_csv(const CsvText& text, const ImportOptions& options) {
  ImportNotes notes;
  if (!text.notes.empty()) {
    auto read = read_notes(text.notes, notes_path(text.file).string());
    if (!read) {
      return read.error();
    }
    notes = *std::move(read);
  }
  const auto table = CsvTable::read(text.csv, text.file);
  if (!table) {
    return table.error();
  }
  auto plan = plan_columns(*table, options);
  if (!plan) {
    return plan.error();
  }
  return Importer(*table, *std::move(plan), notes, options).import();
}

Result<Imported> import_csv(const std::filesystem::path& path, const ImportOptions& options) {
  const auto csv = read_text_file(path, CsvLimits().file_bytes);
  if (!csv) {
    return csv.error();
  }
  std::string notes;
  std::error_code ignored;
  if (const auto beside = notes_path(path); std::filesystem::exists(beside, ignored)) {
    auto read = read_text_file(beside, kNotesBytes);
    if (!read) {
      return read.error();
    }
    if (read->empty()) {
      return bad_input(fmt::format("{}: empty; needed JSON", one_line(beside.string())));
    }
    notes = *std::move(read);
  }
  return import_csv({*csv, notes, path.string()}, options);
}

std::filesystem::path notes_path(const std::filesystem::path& csv) {
  return std::filesystem::path(csv).replace_extension(".notes.json");
}

}  // namespace halfwatt

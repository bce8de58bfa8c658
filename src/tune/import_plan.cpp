#include "tune/import_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "tune/csv_bytes.h"
#include "tune/import_split.h"
#include "tune/labels.h"

namespace halfwatt {
namespace {

using enum ColumnRole;

constexpr std::size_t kListedNames = 12;  // of columns, in a message
constexpr std::size_t kNameBytes = 40;

/// What is known about a column before it is decided what it is used for.
struct Candidate {
  std::size_t column = 0;
  std::string name;
  std::optional<ColumnMeaning> meaning;
  bool used = false;
};

/// "a, b and c", cut short where there are many.
std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kListedNames) {
      return text + fmt::format(" and {} more", names.size() - i);
    }
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

/// Splits "NAME=UNIT" at the last "=".
std::pair<std::string, std::string> name_with_unit(const std::string& text) {
  const std::size_t split = text.rfind('=');
  return split == std::string::npos ? std::pair(text, std::string())
                                    : std::pair(text.substr(0, split), text.substr(split + 1));
}

class Planner {
 public:
  Planner(const CsvTable& table, const ImportOptions& options)
      : table_(table), options_(options) {
    for (std::size_t column = 0; column < table.columns(); ++column) {
      const std::string_view name = table.name(column);
      candidates_.push_back({column, one_line(name, kNameBytes), meaning_of(name)});
    }
  }

  Result<ColumnPlan> plan() {
    for (const auto step : {&Planner::leave_out, &Planner::choose_x, &Planner::choose_y,
                            &Planner::force_labels, &Planner::choose_the_rest}) {
      if (auto done = (this->*step)(); !done) {
        return done.error();
      }
    }
    return std::move(plan_);
  }

 private:
  Error error(std::string_view text) const { return table_.header_error(text); }

  Result<Candidate*> called(std::string_view flag, const std::string& name) {
    for (Candidate& candidate : candidates_) {
      if (table_.name(candidate.column) == name && !name.empty()) {
        return &candidate;
      }
    }
    const std::string plain = plain_name(name);
    for (Candidate& candidate : candidates_) {
      if (!plain.empty() && plain_name(candidate.name) == plain) {
        return &candidate;
      }
    }
    return error(fmt::format("{} {}: no such column; there are {}", flag,
                             one_line(name, kNameBytes), all_names()));
  }

  std::string all_names() const {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates_) {
      if (!candidate.name.empty()) {
        names.push_back(candidate.name);
      }
    }
    return joined(names);
  }

  /// Columns that are still free and mean one of `roles`.
  std::vector<Candidate*> free_with(std::initializer_list<ColumnRole> roles) {
    std::vector<Candidate*> found;
    for (Candidate& candidate : candidates_) {
      if (!candidate.used && candidate.meaning &&
          std::ranges::find(roles, candidate.meaning->role) != roles.end()) {
        found.push_back(&candidate);
      }
    }
    return found;
  }

  Error ambiguous(const std::vector<Candidate*>& found,
                  std::string_view what,
                  char flag) const {
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const Candidate* candidate : found) {
      names.push_back(candidate->name);
    }
    return error(fmt::format("columns {} {} tell {}; choose one: --{} {}", joined(names),
                             names.size() == 2 ? "both" : "all", what, flag, names.front()));
  }

  Result<void> leave_out() {
    for (const std::string& name : options_.ignore) {
      auto found = called("--ignore", name);
      if (!found) {
        return found.error();
      }
      (*found)->used = true;
    }
    std::vector<std::string> nameless;
    for (Candidate& candidate : candidates_) {
      if (candidate.name.empty()) {
        candidate.used = true;
        nameless.push_back(std::to_string(candidate.column + 1));
      }
    }
    if (!nameless.empty()) {
      plan_.remarks.push_back(
          fmt::format("column {} has no name and is not used", joined(nameless)));
    }
    return {};
  }

  Result<void> choose_x() {
    if (!options_.x.empty()) {
      return choose_named_x();
    }
    for (const auto role : {limit, set_clock, sm_clock, mem_clock}) {
      const auto found = free_with({role});
      if (found.size() > 1) {
        return ambiguous(found, role == limit ? "the power limit" : "a clock", 'x');
      }
      if (found.size() == 1) {
        take_x(*found.front(), "");
        return {};
      }
    }
    if (const auto shares = free_with({limit_share}); !shares.empty()) {
      return error(
          fmt::format("column {} is a share of a limit that the file does not tell; "
                      "needed power_limit_w in watts",
                      shares.front()->name));
    }
    return error(
        fmt::format("no column tells the power limit; needed power_limit_w, or "
                    "--x NAME=UNIT with one of {}",
                    all_names()));
  }

  Result<void> choose_named_x() {
    auto whole = called("--x", options_.x);
    if (whole) {
      take_x(**whole, "");
      return {};
    }
    const auto [name, unit] = name_with_unit(options_.x);
    auto found = called("--x", name);
    if (!found) {
      return found.error();
    }
    take_x(**found, unit);
    return {};
  }

  void take_x(Candidate& candidate, const std::string& given_unit) {
    const std::string plain = plain_name(candidate.name);
    const Unit* unit = unit_called(given_unit);
    if (given_unit.empty()) {
      unit = candidate.meaning ? candidate.meaning->unit
                               : unit_called(plain.substr(plain.rfind('_') + 1));
    }
    candidate.used = true;
    ColumnMeaning meaning = candidate.meaning.value_or(ColumnMeaning{});
    meaning.unit = nullptr;
    plan_.x_unit_given = !given_unit.empty();
    if (unit != nullptr && unit->dimension == Dimension::power) {
      plan_.knob = power_limit_knob();
      meaning.unit = unit;
    } else if (unit != nullptr && unit->dimension == Dimension::frequency) {
      const bool memory = plain.find("mem") != std::string::npos;
      plan_.knob = {memory ? "mem_clock" : "sm_clock", "MHz"};
      meaning.unit = unit;
    } else {
      const bool named = given_unit.empty() && unit != nullptr;
      plan_.knob = {candidate.name,
                    named ? std::string(unit->word) : one_line(given_unit, kNameBytes)};
    }
    plan_.x = {candidate.column, meaning};
  }

  Result<void> choose_y() {
    if (!options_.y.empty()) {
      return choose_named_y();
    }
    const auto found = free_with({time, rate});
    if (found.size() > 1) {
      return ambiguous(found, "the speed", 'y');
    }
    if (found.size() == 1) {
      take_y(*found.front(), *found.front()->meaning);
      return {};
    }
    std::vector<Candidate*> variants;
    for (Candidate& candidate : candidates_) {
      if (!candidate.used && !candidate.meaning && variant_of(candidate.name)) {
        variants.push_back(&candidate);
      }
    }
    if (variants.size() > 1) {
      return ambiguous(variants, "the speed", 'y');
    }
    if (variants.empty()) {
      return error(
          fmt::format("no column tells how fast it was; needed one such as ms_per_batch, "
                      "time_s, throughput or tokens_per_s, or --y NAME=UNIT with one of "
                      "{}",
                      all_names()));
    }
    Candidate& only = *variants.front();
    take_y(only, *variant_of(only.name));
    plan_.remarks.push_back(fmt::format("the speed is read from column {}", only.name));
    return {};
  }

  Result<void> choose_named_y() {
    std::string unit;
    auto found = called("--y", options_.y);
    if (!found) {
      auto [name, given] = name_with_unit(options_.y);
      unit = std::move(given);
      found = called("--y", name);
    }
    if (!found) {
      return found.error();
    }
    Candidate& candidate = **found;
    if (candidate.column == plan_.x.column) {
      return error(fmt::format("column {} cannot be both --x and --y", candidate.name));
    }
    auto meaning = unit.empty() ? candidate.meaning : performance_in(unit);
    if (unit.empty() && (!meaning || (meaning->role != time && meaning->role != rate))) {
      meaning = variant_of(candidate.name);
      const std::string plain = plain_name(candidate.name);
      if (!meaning && plain.find('_') != std::string::npos) {
        meaning = performance_in(plain.substr(plain.rfind('_') + 1));
      }
    }
    if (!meaning) {
      return error(
          fmt::format("--y {0}: is it a time or a rate? Say --y {1}=ms or "
                      "--y {1}=images/s",
                      one_line(options_.y, kNameBytes), candidate.name));
    }
    take_y(candidate, *meaning);
    return {};
  }

  void take_y(Candidate& candidate, const ColumnMeaning& meaning) {
    candidate.used = true;
    plan_.y = {candidate.column, meaning};
  }

  Result<void> force_labels() {
    for (const std::string& name : options_.labels) {
      auto found = called("--label", name);
      if (!found) {
        return found.error();
      }
      const std::size_t column = (*found)->column;
      if (column == plan_.x.column || column == plan_.y.column) {
        return error(fmt::format("--label {}: is the {} already", (*found)->name,
                                 column == plan_.x.column ? "knob" : "speed"));
      }
      // Asked for twice, or --ignore as well: a label all the same, once.
      if (std::ranges::find(plan_.labels, column) == plan_.labels.end()) {
        plan_.labels.push_back(column);
      }
      (*found)->used = true;
    }
    return {};
  }

  Result<void> choose_the_rest() {
    choose_ranked();
    choose_energy();
    choose_power();
    for (const Candidate* candidate : free_with({observation})) {
      if (candidate->meaning->observed != Observed::nothing) {
        plan_.observations.push_back({candidate->column, *candidate->meaning});
      }
    }
    choose_labels();
    remark_on_a_constant_knob();
    return {};
  }

  /// The batch, the device and the state: of several the one with the lowest rank.
  void choose_ranked() {
    const auto best = [this](ColumnRole role, int (*rank)(std::string_view)) {
      // The batch may be the knob, or forced to be a label, and still say how many items.
      std::optional<std::size_t> chosen;
      for (const Candidate& candidate : candidates_) {
        const bool fits = candidate.meaning && candidate.meaning->role == role &&
                          (!candidate.used || role == batch || role == device) &&
                          !is_ignored(candidate);
        if (fits && (!chosen || rank(candidate.name) < rank(candidates_[*chosen].name))) {
          chosen = candidate.column;
        }
      }
      return chosen;
    };
    plan_.batch = best(batch, batch_rank);
    plan_.device = best(device, device_rank);
    plan_.state = best(state, [](std::string_view) { return 0; });
  }

  bool is_ignored(const Candidate& candidate) const {
    return candidate.used && candidate.column != plan_.x.column &&
           candidate.column != plan_.y.column &&
           std::ranges::find(plan_.labels, candidate.column) == plan_.labels.end();
  }

  /// How well an energy belongs to the work of the chosen time or rate: 0 best, 3 not at all.
  int misfit(const ColumnMeaning& energy) const {
    const ColumnMeaning& y = plan_.y.meaning;
    const Per per = y.per == Per::unsaid ? Per::step : y.per;
    if (energy.per == per && (per != Per::item || energy.item == y.item ||
                              energy.item == "item" || y.item == "item")) {
      return 0;
    }
    if (energy.per == Per::unsaid) {
      // A rate is of no particular amount of work, so joules of "the run" say nothing.
      return y.role == time ? 1 : 3;
    }
    const bool converts = per == Per::step && plan_.batch && energy.per == Per::item;
    return converts ? 2 : 3;
  }

  void choose_energy() {
    auto found = free_with({energy});
    std::ranges::sort(found, {}, [this](const Candidate* candidate) {
      return std::tuple(misfit(*candidate->meaning), plain_name(candidate->name));
    });
    for (const Candidate* candidate : found) {
      const int fit = misfit(*candidate->meaning);
      if (fit == 3) {
        plan_.remarks.push_back(fmt::format(
            "column {} is not used: it is not the energy of the work that {} is about",
            candidate->name, one_line(table_.name(plan_.y.column), kNameBytes)));
      } else if (plan_.energy) {
        remark_on_second(*candidate, plan_.energy->column);
      } else {
        plan_.energy = {candidate->column, *candidate->meaning};
      }
    }
  }

  void choose_power() {
    auto found = free_with({power});
    std::ranges::sort(found, {},
                      [](const Candidate* candidate) { return plain_name(candidate->name); });
    for (const Candidate* candidate : found) {
      if (plan_.power) {
        remark_on_second(*candidate, plan_.power->column);
      } else {
        plan_.power = {candidate->column, *candidate->meaning};
      }
    }
  }

  void remark_on_second(const Candidate& candidate, std::size_t first) {
    plan_.remarks.push_back(fmt::format("column {} is not used: {} is used instead",
                                        candidate.name,
                                        one_line(table_.name(first), kNameBytes)));
  }

  void choose_labels() {
    std::vector<std::size_t> known = plan_.labels;
    std::vector<std::size_t> uncertain;
    std::vector<std::string> unused;
    for (const Candidate& candidate : candidates_) {
      if (candidate.used || candidate.column == plan_.device) {
        continue;
      }
      const auto role = candidate.meaning ? candidate.meaning->role : label;
      // Beside a clock that is swept a memory clock was set; beside a limit it may be a
      // reading.
      const bool clock =
          role == sm_clock || (role == mem_clock && plan_.knob == power_limit_knob());
      const bool other_speed =
          role == time || role == rate || (!candidate.meaning && variant_of(candidate.name));
      if (other_speed) {
        unused.push_back(candidate.name);
      } else if (!candidate.meaning || role == limit_share || clock) {
        uncertain.push_back(candidate.column);
      } else if (role == label || role == batch || role == device || role == limit ||
                 role == set_clock || role == mem_clock) {
        known.push_back(candidate.column);
      }
    }
    if (!unused.empty()) {
      plan_.remarks.push_back(fmt::format("not used: {}", joined(unused)));
    }
    if (plan_.device && has_several(*plan_.device) && *plan_.device != plan_.x.column &&
        std::ranges::find(known, *plan_.device) == known.end()) {
      known.push_back(*plan_.device);
    }
    plan_.labels = known;
    judge(known, uncertain);
    std::ranges::sort(plan_.labels);
  }

  void judge(const std::vector<std::size_t>& known, const std::vector<std::size_t>& uncertain) {
    const auto labels = find_labels(table_, plan_.x.column, known, uncertain);
    std::vector<std::string> unused;
    for (const std::size_t column : uncertain) {
      const Candidate& candidate = candidates_[column];
      const auto role = candidate.meaning ? candidate.meaning->role : label;
      const bool never_changes = role == sm_clock && !has_several(column);
      if (std::ranges::find(labels, column) != labels.end() && !never_changes) {
        plan_.labels.push_back(column);
      } else if (role == sm_clock || role == mem_clock) {
        ColumnMeaning seen = *candidate.meaning;
        seen.observed = role == sm_clock ? Observed::sm_clock : Observed::memory_clock;
        plan_.observations.push_back({column, seen});
      } else {
        unused.push_back(candidate.name);
      }
    }
    if (!unused.empty()) {
      plan_.remarks.push_back(
          fmt::format("not used, since differing from row to row: {} (--label {} splits by it)",
                      joined(unused), unused.front()));
    }
  }

  bool has_several(std::size_t column) const {
    for (std::size_t row = 1; row < table_.rows(); ++row) {
      if (table_.cell(row, column) != table_.cell(0, column)) {
        return true;
      }
    }
    return false;
  }

  void remark_on_a_constant_knob() {
    if (table_.rows() < 2 || has_several(plan_.x.column)) {
      return;
    }
    for (const auto& [column, meaning] : plan_.observations) {
      if (meaning.role == sm_clock && has_several(column)) {
        plan_.remarks.push_back(fmt::format("{} never changes, {} does: --x {} reads along it",
                                            candidates_[plan_.x.column].name,
                                            candidates_[column].name,
                                            candidates_[column].name));
      }
    }
  }

  const CsvTable& table_;
  const ImportOptions& options_;
  std::vector<Candidate> candidates_;
  ColumnPlan plan_;
};

}  // namespace

Result<ColumnPlan> plan_columns(const CsvTable& table, const ImportOptions& options) {
  return Planner(table, options).plan();
}

}  // namespace halfwatt

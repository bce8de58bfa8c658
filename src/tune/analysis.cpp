#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tune/labels.h"
#include "tune/pareto.h"
#include "tune/series_notes.h"
#include "tune/verdict.h"

namespace halfwatt {
namespace {

NumericalState worst_state(const Series& series) {
  NumericalState worst = NumericalState::unknown;
  for (const Measurement& measured : series.measurements) {
    worst = std::max(worst, measured.numerical_state);
  }
  return worst;
}

std::size_t peak_of(const Curve& curve, const std::optional<Plateau>& plateau) {
  std::size_t peak = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (plateau && curve.points[i].x == plateau->from) {
      return i;
    }
    if (curve.points[i].items_per_second > curve.points[peak].items_per_second) {
      peak = i;
    }
  }
  return peak;
}

SeriesVerdict judge(Series series, const AnalysisOptions& options) {
  SeriesVerdict verdict;
  verdict.series = std::move(series);
  verdict.curve = build_curve(verdict.series, options.reference);
  verdict.state = worst_state(verdict.series);
  if (!verdict.curve.empty()) {
    verdict.plateau = find_plateau(verdict.curve, verdict.series.knob.unit == "W");
    if (verdict.plateau) {
      verdict.curve.binding_limit = verdict.plateau->from;
    }
    verdict.knee = find_knee(verdict.curve);
    verdict.peak = peak_of(verdict.curve, verdict.plateau);
    verdict.least = least_energy(verdict.curve, verdict.series.knob);
  }
  return verdict;
}

// Within a plateau every limit is as fast: the lowest one is advised.
void advise_start_of_plateau(KeepVerdict& keep, const SeriesVerdict& verdict) {
  if (!verdict.plateau || !keep.limit || *keep.limit <= verdict.plateau->from) {
    return;
  }
  keep.limit = verdict.plateau->from;
  keep.reached_percent = 100 * verdict.curve.share(verdict.peak);
  keep.lower_limit.reset();
}

// `own_per_common`: by how much the series' own 100 % is faster than the common one.
std::vector<KeepVerdict> keep_shares(const SeriesVerdict& verdict,
                                     const AnalysisOptions& options,
                                     double own_per_common) {
  std::vector<KeepVerdict> all;
  if (verdict.curve.empty()) {
    return all;
  }
  const Shares shares(verdict.curve);
  const Knob& knob = verdict.series.knob;
  for (const double percent : options.keep_percent) {
    KeepVerdict keep = shares.keep(percent / own_per_common, knob.step);
    advise_start_of_plateau(keep, verdict);
    keep.percent = percent;
    keep.reached_percent *= own_per_common;
    // A search that never went to the card's floor does not know whether less would do.
    const auto& limits = verdict.series.limits;
    if (keep.at_floor && knob.step && limits && *keep.limit > limits->min.value()) {
      keep.resolvable = false;
    }
    all.push_back(keep);
  }
  return all;
}

// The values of the labels `keys`, led by the device where that is no label of its own.
std::string name_of(const Series& series,
                    const std::vector<std::string>& keys,
                    bool several_devices) {
  const bool has_device_label = label(series.labels, "gpu") || label(series.labels, "device");
  std::string name = several_devices && !has_device_label ? series.device : "";
  std::string key_of_last;
  for (const std::string& key : keys) {
    if (const auto value = label(series.labels, key)) {
      name += (name.empty() ? "" : " ") + std::string(*value);
      key_of_last = key;
    }
  }
  if (name.empty()) {
    return series.source.empty() ? "series" : series.source;
  }
  // A number alone says nothing: "batch 64".
  const bool bare_number = name.find_first_not_of("0123456789.") == std::string::npos;
  return bare_number ? key_of_last + " " + name : name;
}

// Names what tells the series apart, and what they share.
void name_series(Verdict& verdict) {
  std::vector<std::string> keys;
  for (const SeriesVerdict& each : verdict.series) {
    for (const auto& [key, value] : each.series.labels) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        keys.push_back(key);
      }
    }
  }
  std::vector<std::string> telling;
  Labels common;
  std::set<std::string> devices;
  for (const SeriesVerdict& each : verdict.series) {
    devices.insert(each.series.device);
  }
  for (const std::string& key : keys) {
    const auto first = label(verdict.series.front().series.labels, key);
    const bool same = std::all_of(
        verdict.series.begin(), verdict.series.end(),
        [&](const SeriesVerdict& each) { return label(each.series.labels, key) == first; });
    if (same && first) {
      common.emplace_back(key, *first);
    } else {
      telling.push_back(key);
    }
  }
  verdict.common = text(common);
  // One series alone has nothing to tell it from: all its labels name it.
  const std::vector<std::string>& used = verdict.series.size() == 1 ? keys : telling;
  for (const SeriesVerdict& each : verdict.series) {
    verdict.names.push_back(name_of(each.series, used, devices.size() > 1));
  }
  if (verdict.series.size() == 1) {
    verdict.common.clear();
  }
}

std::vector<CardVerdict> judge_cards(const Verdict& verdict) {
  std::vector<CardVerdict> cards;
  std::vector<std::string> devices;
  for (const SeriesVerdict& each : verdict.series) {
    if (std::find(devices.begin(), devices.end(), each.series.device) == devices.end()) {
      devices.push_back(each.series.device);
    }
  }
  for (const std::string& device : devices) {
    for (std::size_t share = 0; share < verdict.options.keep_percent.size(); ++share) {
      CardVerdict card{device, verdict.options.keep_percent[share], std::nullopt, "", true};
      std::size_t on_card = 0;
      bool reached = true;
      for (std::size_t i = 0; i < verdict.series.size(); ++i) {
        const SeriesVerdict& each = verdict.series[i];
        if (each.series.device != device || each.series.knob.unit != "W" || !each.advisable()) {
          continue;
        }
        ++on_card;
        card.resolvable = card.resolvable && each.keep[share].resolvable;
        const auto limit = each.keep[share].limit;
        if (!limit) {
          reached = false;
          card.binding_series = verdict.names[i];
        } else if (reached && (!card.limit || *limit > *card.limit)) {
          card.limit = limit;
          card.binding_series = verdict.names[i];
        }
      }
      if (!reached) {
        card.limit.reset();
      }
      if (on_card >= 2) {
        cards.push_back(std::move(card));
      }
    }
  }
  return cards;
}

Result<std::size_t> find_series(const Verdict& verdict, const std::string& name) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < verdict.series.size(); ++i) {
    if (verdict.names[i] == name || text(verdict.series[i].series.labels) == name) {
      found.push_back(i);
    }
  }
  if (found.size() == 1) {
    return found.front();
  }
  if (found.size() > 1) {
    return bad_input(
        fmt::format("--relative-to {}: {} series have that name", name, found.size()));
  }
  return bad_input(fmt::format("--relative-to {}: no series of that name; there are: {}", name,
                               fmt::join(verdict.names, ", ")));
}

Result<void> judge_shares(Verdict& verdict) {
  std::optional<std::size_t> common;
  if (!verdict.options.relative_to.empty()) {
    const Result<std::size_t> found = find_series(verdict, verdict.options.relative_to);
    if (!found) {
      return found.error();
    }
    common = *found;
    if (verdict.series[*common].curve.empty()) {
      return bad_input(fmt::format("--relative-to {}: no window of that series counts",
                                   verdict.options.relative_to));
    }
  }
  for (SeriesVerdict& each : verdict.series) {
    double own_per_common = 1;
    if (common && !each.curve.empty()) {
      const SeriesVerdict& base = verdict.series[*common];
      if (!comparable(each, base)) {
        each.notes.push_back(fmt::format("not comparable with {}: shares are of its own speed",
                                         verdict.names[*common]));
      } else {
        own_per_common = each.curve.points[each.curve.reference].items_per_second /
                         base.curve.points[base.curve.reference].items_per_second;
      }
    }
    each.keep = keep_shares(each, verdict.options, own_per_common);
  }
  return {};
}

}  // namespace

bool SeriesVerdict::advisable() const {
  return !curve.empty() && state != NumericalState::dead && state != NumericalState::stalled &&
         !power_only();
}

bool SeriesVerdict::power_only() const { return unit() == kSecondOfRunning; }

double SeriesVerdict::items_per_step() const {
  return series.measurements.empty() ? 1 : series.measurements.front().work.items_per_step;
}

std::string SeriesVerdict::unit() const {
  return series.measurements.empty() ? "step" : series.measurements.front().work.unit;
}

Result<Verdict> analyze(std::vector<Series> series, const AnalysisOptions& options) {
  if (series.empty()) {
    return bad_input("nothing to analyze: no series in the input");
  }
  for (const double percent : options.keep_percent) {
    if (!(percent > 0 && percent <= 100)) {
      return bad_input(
          fmt::format("--keep {:g}: needed shares above 0 and up to 100", percent));
    }
  }
  Verdict verdict;
  verdict.options = options;
  verdict.provenance = series.front().provenance;
  for (Series& each : series) {
    // A verdict is as good as its weakest input.
    verdict.provenance = std::max(verdict.provenance, each.provenance);
    verdict.series.push_back(judge(std::move(each), options));
  }
  name_series(verdict);
  if (const Result<void> done = judge_shares(verdict); !done) {
    return done.error();
  }
  for (SeriesVerdict& each : verdict.series) {
    add_notes(each, options);
  }
  verdict.card = judge_cards(verdict);
  verdict.pareto = pareto_groups(verdict.series);
  return verdict;
}

}  // namespace halfwatt

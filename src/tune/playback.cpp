#include "tune/playback.h"

#include <algorithm>
#include <map>

#include "measure/statistics.h"
#include "tune/embedded.h"
#include "tune/import_csv.h"

namespace halfwatt {
namespace {

// The study logged no power. What a workload would draw without a limit is taken to be the
// lowest limit from which more watts gain less than this in speed.
constexpr double kNoGain = 0.005;

// A playback walks every step; shorter ones would walk for minutes.
constexpr Seconds kShortestStep{1e-4};

std::vector<RecordedPoint> curve_of(const Series& series) {
  std::map<double, std::vector<double>> times;
  for (const Measurement& measured : series.measurements) {
    if (const auto limit = measured.setting.number(series.knob.name)) {
      times[*limit].push_back(measured.work.step_time.value());
    }
  }
  std::vector<RecordedPoint> curve;
  curve.reserve(times.size());
  for (const auto& [limit, list] : times) {
    curve.push_back({Watts(limit), Seconds(median(list))});
  }
  return curve;
}

Watts demand_of(const std::vector<RecordedPoint>& curve) {
  const auto by_time = [](const auto& a, const auto& b) { return a.step_time < b.step_time; };
  const Seconds fastest = std::min_element(curve.begin(), curve.end(), by_time)->step_time;
  const auto enough = std::find_if(curve.begin(), curve.end(), [fastest](const auto& point) {
    return point.step_time <= fastest * (1 + kNoGain);
  });
  return enough->limit;
}

NumericalState state_of(const Series& series) {
  for (const Measurement& measured : series.measurements) {
    if (measured.numerical_state != NumericalState::unknown) {
      return measured.numerical_state;
    }
  }
  return NumericalState::unknown;
}

// Label values that tell this series from the others, as one word: "train-fp32".
std::string short_name(const Series& series,
                       const std::vector<Series>& all,
                       const std::vector<std::string>& names) {
  std::string name;
  for (const std::string& key : names) {
    const auto value = label(series.labels, key);
    const bool differs = std::any_of(all.begin(), all.end(), [&](const Series& other) {
      return label(other.labels, key) != value;
    });
    if (value && differs) {
      name += (name.empty() ? "" : "-") + std::string(*value);
    }
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '_'; }, '-');
  return name;
}

}  // namespace

std::vector<RecordedSeries> playable(const std::vector<Series>& recorded,
                                     std::string_view prefix) {
  std::vector<RecordedSeries> playable;
  std::map<std::string, int> seen;
  const auto usable = [](const Series& series) {
    const std::vector<RecordedPoint> curve = curve_of(series);
    return series.knob == power_limit_knob() && curve.size() >= 2 &&
           std::all_of(curve.begin(), curve.end(),
                       [](const auto& point) { return point.step_time >= kShortestStep; });
  };
  const auto names_without = [&](std::string_view left_out) {
    std::vector<std::string> names;
    for (const auto& [key, value] : recorded.empty() ? Labels{} : recorded.front().labels) {
      if (key != left_out) {
        names.push_back(key);
      }
    }
    return names;
  };
  // The batch tells series apart only where nothing else does.
  const std::vector<std::string> few = names_without("batch");
  const std::vector<std::string> all = names_without("");
  for (const Series& series : recorded) {
    ++seen[short_name(series, recorded, few)];
  }
  for (const Series& series : recorded) {
    if (!usable(series)) {
      continue;
    }
    RecordedSeries playback;
    const std::string brief = short_name(series, recorded, few);
    const std::string name = seen[brief] > 1 ? short_name(series, recorded, all) : brief;
    const Work& work = series.measurements.front().work;
    playback.info = {std::string(prefix) + (name.empty() ? "" : ":" + name), series.labels,
                     work.unit, work.items_per_step};
    playback.curve = curve_of(series);
    playback.demand = demand_of(playback.curve);
    playback.state = state_of(series);
    playback.card.name = series.device + " (simulated)";
    playback.card.limits = series.limits.value_or(
        LimitRange{playback.curve.front().limit, playback.curve.back().limit, std::nullopt});
    playable.push_back(std::move(playback));
  }
  return playable;
}

Result<Imported> import_embedded_study() {
  return import_csv(
      CsvText{embedded_study_csv(), embedded_study_notes(), "rtx3090_vit_b16.csv"});
}

Result<std::vector<RecordedSeries>> embedded_study() {
  const Result<Imported> imported = import_embedded_study();
  if (!imported) {
    return imported.error();
  }
  return playable(imported->series, "study");
}

}  // namespace halfwatt

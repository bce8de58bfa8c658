#include "tune/pareto.h"

#include <algorithm>

#include "tune/labels.h"

namespace halfwatt {
namespace {

// Labels that say which job it was.
Labels job(const Series& series) {
  Labels job;
  for (const auto& pair : series.labels) {
    if (!is_knob_label(pair.first)) {
      job.push_back(pair);
    }
  }
  std::sort(job.begin(), job.end());
  return job;
}

std::vector<ParetoPoint> front_of(const ParetoGroup& group,
                                  const std::vector<SeriesVerdict>& series) {
  std::vector<ParetoPoint> all;
  for (const std::size_t i : group.series) {
    const Curve& curve = series[i].curve;
    for (std::size_t k = 0; k < curve.points.size(); ++k) {
      all.push_back(
          {i, k, curve.points[k].items_per_second, joules_per_item(curve, k, group.basis)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ParetoPoint& a, const ParetoPoint& b) {
    return a.items_per_second != b.items_per_second ? a.items_per_second > b.items_per_second
                                                    : a.joules_per_item < b.joules_per_item;
  });
  std::vector<ParetoPoint> front;
  for (const ParetoPoint& point : all) {
    if (front.empty() || point.joules_per_item < front.back().joules_per_item) {
      front.push_back(point);
    }
  }
  return front;
}

}  // namespace

bool comparable(const SeriesVerdict& a, const SeriesVerdict& b) {
  return a.series.device == b.series.device && a.unit() == b.unit() &&
         job(a.series) == job(b.series);
}

std::vector<ParetoGroup> pareto_groups(const std::vector<SeriesVerdict>& series) {
  std::vector<ParetoGroup> groups;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto basis = energy_basis(series[i].curve, series[i].series.knob);
    if (!series[i].advisable() || !basis) {
      continue;
    }
    const auto fits = [&](const ParetoGroup& group) {
      return group.basis == *basis && comparable(series[group.series.front()], series[i]);
    };
    const auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group != groups.end()) {
      group->series.push_back(i);
    } else {
      groups.push_back({{i}, *basis, {}});
    }
  }
  for (ParetoGroup& group : groups) {
    group.front = front_of(group, series);
  }
  return groups;
}

}  // namespace halfwatt

#pragma once

#include <string>
#include <vector>

#include "measure/series.h"

namespace halfwatt {

/// A window as a test writes it down.
struct Scripted {
  double limit = 0;
  double step_ms = 0;
  double watts = 0;  ///< mean draw; 0: no energy was measured
  double at_s = -1;  ///< start; negative: the windows follow each other
};

/// A series of such windows, of one image a step.
inline Series scripted_series(const std::vector<Scripted>& windows) {
  Series series;
  series.device = "card";
  series.labels = {{"workload", "net"}, {"precision", "fp32"}};
  double at = 0;
  for (const Scripted& window : windows) {
    Measurement measured;
    measured.setting.set("power_limit", window.limit);
    measured.work.steps = 20;
    measured.work.step_time = Seconds(window.step_ms / 1000);
    measured.work.duration = measured.work.step_time * 20;
    measured.work.unit = "image";
    measured.started = Seconds(window.at_s >= 0 ? window.at_s : at);
    at += measured.work.duration.value();
    if (window.watts > 0) {
      measured.energy.value = Watts(window.watts) * measured.work.duration;
      measured.energy.method = EnergyMethod::counter;
    }
    series.measurements.push_back(measured);
  }
  return series;
}

}  // namespace halfwatt

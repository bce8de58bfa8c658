#include "measure/sample_record.h"

#include "measure/record_json.h"

namespace halfwatt {
namespace {

// Numbers that six or fifteen digits do not tell.
constexpr double kThird = 1.0 / 3;
constexpr double kTenth = 0.1;

}  // namespace

RecordHeader full_header() {
  RecordHeader header;
  header.device_id = "sim:rtx3090";
  header.device = "RTX 3090 \"Ti\" \\ \u00e9";
  header.limits = LimitRange{Watts(100 + kThird), Watts(480), Watts(390 - kTenth)};
  header.provenance = Provenance::measured;
  header.workload = "study:train-fp32";
  header.command = {"python3", "train.py", "--name", "two words", ""};
  header.labels = {{"precision", "fp32"}, {"batch", "160"}, {"mode", "train"}};
  header.knobs = {power_limit_knob(), {"batch", ""}};
  header.keep_percent = {80, 90, 95 + kThird};
  header.reference = "max";
  return header;
}

RecordHeader bare_header() {
  RecordHeader header;
  header.device_id = "cpu";
  header.workload = "none";
  header.knobs = {power_limit_knob()};
  return header;
}

Measurement full_measurement() {
  Measurement measured;
  measured.started = Seconds(1000 + kThird);
  measured.setting.set("power_limit", 300 + kTenth);
  measured.setting.set("precision", "tf32");
  measured.setting.set("batch", 160.0);
  measured.work = {.steps = 20 + kThird,
                   .duration = Seconds(5 + kThird),
                   .step_time = Seconds(kThird),
                   .step_time_low = Seconds(kThird - 1e-9),
                   .step_time_high = Seconds(kThird + 1e-9),
                   .step_time_p05 = Seconds(kThird - kTenth),
                   .step_time_p95 = Seconds(kThird + kTenth),
                   .items_per_step = 160 + kTenth,
                   .unit = "image"};
  measured.energy = {Joules(1500 + kThird), EnergyMethod::power_integral, 0.03 + kTenth,
                     0.002 * kThird};
  measured.conditions = {.requested_limit = Watts(300 + kTenth),
                         .enforced_limit = Watts(300 + kThird),
                         .sm_clock = Megahertz(1695 + kThird),
                         .memory_clock = Megahertz(9501 + kThird),
                         .temperature_start = Celsius(-5 - kThird),
                         .temperature_end = Celsius(66 + kThird),
                         .fan_percent = 53 + kThird,
                         .memory_used = Bytes(123456789012),
                         .resident_peak = Bytes(9876543210),
                         .power_capped_share = 0.9 + kTenth * kThird,
                         .throttled_share = kTenth * kTenth};
  measured.numerical_state = NumericalState::live;
  measured.notes = {WindowNote::never_settled, WindowNote::clamped};
  measured.predicted = {.memory = Bytes(123456789),
                        .step_time = Seconds(kThird + kTenth),
                        .flops = 16.94e12 + kThird,
                        .emulated = true};
  return measured;
}

Measurement bare_measurement() {
  Measurement measured;
  measured.setting.set("power_limit", 300.0);
  measured.work.steps = 1;
  measured.work.step_time = Seconds(1);
  return measured;
}

std::string record_text(int windows) {
  std::string text = header_line(full_header()) + "\n";
  for (int i = 0; i < windows; ++i) {
    text += measurement_line(full_measurement()) + "\n";
  }
  return text;
}

}  // namespace halfwatt

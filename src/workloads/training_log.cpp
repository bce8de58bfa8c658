#include "workloads/training_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/train/cut_log.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kSpeed = "speed.jsonl";

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string metrics_line(const StepEvent& event) {
  const StepReport& report = event.report;
  return line({{"event", "step"},
               {"attempt", report.attempt},
               {"epoch", event.epoch},
               {"loss", number(report.loss)},
               {"gradient_norm", number(report.gradient_norm)},
               {"rate", number(report.rate)},
               {"scale", number(report.scale)},
               {"skipped", report.skipped},
               {"state", text(report.state)}});
}

std::string metrics_line(const EvaluationEvent& event) {
  const Evaluation& all = event.evaluation;
  return line({{"event", "evaluation"},
               {"attempt", event.attempt},
               {"epoch", event.epoch},
               {"images", all.images},
               {"right", all.right},
               {"right_of_5", all.right_of_5},
               {"loss", number(all.loss)},
               {"confusion", all.confusion}});
}

Result<TrainingLog> TrainingLog::open(const std::filesystem::path& folder,
                                      std::int64_t attempt,
                                      Device* meter) {
  TrainingLog log(meter);
  for (const auto& [name, stream] :
       {std::pair{kMetrics, &log.metrics_}, {kSpeed, &log.speed_}}) {
    const std::filesystem::path path = folder / name;
    if (const auto cut = cut_log(path, attempt); !cut) {
      return cut.error();
    }
    stream->open(path, std::ios::app);
    if (!*stream) {
      return bad_input(fmt::format("{}: cannot be written", path.string()));
    }
  }
  if (meter) {
    log.last_ = meter->energy();
  }
  return log;
}

void TrainingLog::write(std::ofstream& to, const char* name, const std::string& line) {
  to << line << std::flush;
  if (!to && !failure_) {
    failure_ = bad_input(fmt::format("{}: a line cannot be written; is the disk full?", name));
  }
}

std::optional<Joules> TrainingLog::energy_since_last() {
  const std::optional<Joules> reads = meter_ ? meter_->energy() : std::nullopt;
  const std::optional<Joules> before = std::exchange(last_, reads);
  return reads && before ? std::optional(*reads - *before) : std::nullopt;
}

void TrainingLog::add(Sum& sum, const StepEvent& event, Joules energy) {
  constexpr double kKept = 0.9;  // so that about the last ten count
  sum.images = sum.images * kKept + static_cast<double>(event.images);
  sum.took = sum.took * kKept + event.took;
  sum.waited = sum.waited * kKept + event.waited;
  sum.energy = sum.energy * kKept + energy;
}

StepCost TrainingLog::add(const StepEvent& event) {
  const std::optional<Joules> energy = energy_since_last();
  add(all_, event, Joules());
  if (energy) {
    add(metered_, event, *energy);
  }
  write(metrics_, kMetrics, metrics_line(event));
  write(speed_, kSpeed,
        line({{"attempt", event.report.attempt},
              {"images", event.images},
              {"seconds", number(event.took.value())},
              {"waited_s", number(event.waited.value())},
              {"joules", energy ? number(energy->value()) : Json(nullptr)}}));
  StepCost cost;
  if (all_.took > Seconds()) {
    cost.images_per_second = all_.images / all_.took.value();
    cost.waited_share = all_.waited / all_.took;
  }
  if (energy && metered_.took > Seconds()) {
    cost.power = metered_.energy / metered_.took;
    cost.per_image = metered_.energy * (1 / metered_.images);
  }
  return cost;
}

void TrainingLog::add(const EvaluationEvent& event) {
  energy_since_last();
  write(metrics_, kMetrics, metrics_line(event));
}

}  // namespace halfwatt

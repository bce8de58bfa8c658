#include "workloads/training_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

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

StepCost TrainingLog::add(const StepEvent& event) {
  StepCost cost;
  const double seconds = event.took.value();
  cost.images_per_second = seconds > 0 ? static_cast<double>(event.images) / seconds : 0;
  cost.waited_share = seconds > 0 ? event.waited.value() / seconds : 0;
  if (meter_) {
    const std::optional<Joules> reads = meter_->energy();
    if (reads && last_) {
      cost.joules = *reads - *last_;
    }
    last_ = reads;
  }
  write(metrics_, kMetrics, metrics_line(event));
  write(speed_, kSpeed,
        line({{"attempt", event.report.attempt},
              {"images", event.images},
              {"seconds", number(seconds)},
              {"waited_s", number(event.waited.value())},
              {"joules", cost.joules ? number(cost.joules->value()) : Json(nullptr)}}));
  return cost;
}

void TrainingLog::add(const EvaluationEvent& event) {
  write(metrics_, kMetrics, metrics_line(event));
}

}  // namespace halfwatt

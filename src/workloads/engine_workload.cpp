#include "workloads/engine_workload.h"

#include <utility>

#include "workloads/resident.h"

namespace halfwatt {

EngineWorkload::EngineWorkload(std::unique_ptr<EngineTask> task,
                               const Clock& clock,
                               std::optional<Bytes> memory)
    : task_(std::move(task)), memory_(memory), info_(task_->info()), loop_(clock) {}

Result<void> EngineWorkload::apply(const Setting& setting) {
  if (const auto error = loop_.reading().error) {
    return *error;
  }
  if (setting == setting_) {
    return {};
  }
  loop_.release();
  const auto predicted = task_->predict(setting);
  if (!predicted) {
    return predicted.error();
  }
  setting_ = setting;
  predicted_ = *predicted;
  info_.items_per_step = task_->items(setting);
  fits_ = !memory_ || !predicted->memory || *predicted->memory <= *memory_;
  if (!fits_) {
    return {};
  }
  knows_peak_ = restart_resident_peak();
  auto step = task_->prepare(setting);
  if (!step) {
    return step.error();
  }
  give_back_free_memory();  // graphs, passes and first values, tens of MiB, are not the step's
  ++starts_;
  loop_.start(std::move(*step));
  return {};
}

WorkDone EngineWorkload::work_done() {
  StepLoop::Reading reading = loop_.reading();
  WorkDone done{reading.count, reading.at, starts_};
  if (!fits_) {
    done.stopped = WindowNote::does_not_fit;
  } else if (reading.error) {
    done.stopped = WindowNote::job_failed;
  }
  done.ends = std::move(reading.ends);
  done.resident_peak = knows_peak_ && fits_ ? resident_peak() : std::nullopt;
  return done;
}

std::optional<Prediction> EngineWorkload::predict(const Setting& setting) const {
  if (setting == setting_) {
    return predicted_;
  }
  const auto predicted = task_->predict(setting);
  return predicted ? std::optional(*predicted) : std::nullopt;
}

}  // namespace halfwatt

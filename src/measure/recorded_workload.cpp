#include "measure/recorded_workload.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace halfwatt {
namespace {
// A normal deviation of tens of percent would now and then let a step end before it began.
constexpr double kLeastFactor = 0.05;
}  // namespace

RecordedWorkload::RecordedWorkload(WorkloadInfo info,
                                   std::vector<RecordedPoint> curve,
                                   Watts demand,
                                   NumericalState state,
                                   SimulatedCard& card,
                                   Disturbance disturbance,
                                   std::uint64_t seed)
    : info_(std::move(info)),
      curve_(std::move(curve)),
      demand_(demand),
      state_(state),
      card_(&card),
      disturbance_(disturbance),
      seed_(seed),
      rng_(seed) {
  HALFWATT_CHECK(!curve_.empty(), "a recorded workload needs a point");
  drift_ = disturbance_.drift * rng_.normal();
}

void RecordedWorkload::go_on_after(std::size_t windows) {
  if (windows > 0) {
    rng_ = Rng(seed_ + windows);
  }
}

Seconds RecordedWorkload::recorded_step_time(Watts limit) const {
  const auto above =
      std::lower_bound(curve_.begin(), curve_.end(), limit,
                       [](const RecordedPoint& point, Watts at) { return point.limit < at; });
  if (above == curve_.end()) {
    return curve_.back().step_time;
  }
  if (above == curve_.begin() || above->limit == limit) {
    return above->step_time;
  }
  const auto below = above - 1;
  const double share = (limit - below->limit) / (above->limit - below->limit);
  return below->step_time + (above->step_time - below->step_time) * share;
}

Result<void> RecordedWorkload::apply(const Setting&) {
  window_factor_ = 1 + disturbance_.window_noise * rng_.normal();
  if (rng_.uniform() < disturbance_.outlier_share) {
    window_factor_ *= 1 + disturbance_.outlier_size;
  }
  return {};
}

Result<void> RecordedWorkload::start() {
  if (!running_) {
    running_ = true;
    card_->set_demand(demand_);
    started_ = card_->now();
    done_ = {0, started_};
    next_end_ = started_ + next_step_time();
  }
  return {};
}

void RecordedWorkload::stop() {
  running_ = false;
  card_->set_demand(std::nullopt);
}

// First-order autoregression, sampled at irregular times.
double RecordedWorkload::slow_drift(Seconds elapsed) {
  if (disturbance_.drift > 0) {
    const double kept = std::exp(-(elapsed / disturbance_.drift_time));
    drift_ = kept * drift_ + disturbance_.drift * std::sqrt(1 - kept * kept) * rng_.normal();
  }
  return drift_;
}

Seconds RecordedWorkload::next_step_time() {
  const Seconds base = recorded_step_time(card_->limit()) * card_->slowdown();
  const Seconds age = done_.at - started_;
  const double cold = disturbance_.cold_start * std::exp(-(age / disturbance_.cold_time));
  const double ramp =
      disturbance_.thermal_ramp * (1 - std::exp(-(age / disturbance_.ramp_time)));
  const double jitter =
      disturbance_.step_jitter > 0 ? disturbance_.step_jitter * rng_.normal() : 0.0;
  const double factor =
      window_factor_ * (1 + slow_drift(base)) * (1 + cold) * (1 + ramp) * (1 + jitter);
  return base * std::max(factor, kLeastFactor);
}

WorkDone RecordedWorkload::work_done() {
  while (running_ && next_end_ <= card_->now()) {
    done_ = {done_.count + 1, next_end_};
    next_end_ = done_.at + next_step_time();
  }
  return done_;
}

}  // namespace halfwatt

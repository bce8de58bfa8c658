#include "tune/tuner.h"

#include <algorithm>

namespace halfwatt {
namespace {

constexpr int kAttempts = 3;

}  // namespace

Tuner::Tuner(TunerParts parts, MeterRules rules, std::function<bool()> interrupted)
    : parts_(std::move(parts)),
      meter_(parts_.clock, parts_.device, parts_.workload, rules, std::move(interrupted)) {}

Result<void> Tuner::run(const Search& search,
                        std::vector<Measurement>& measured,
                        const OnMeasurement& tell) {
  if (!measured.empty()) {
    earlier_ = measured.back().started + measured.back().work.duration;
  }
  Result<void> done = parts_.workload.start();
  if (done) {
    done = loop(search, measured, tell);
    parts_.workload.stop();
  }
  if (parts_.limits != nullptr) {
    if (const Result<void> back = parts_.limits->restore(); !back) {
      return back.error();
    }
  }
  return done;
}

Result<void> Tuner::loop(const Search& search,
                         std::vector<Measurement>& measured,
                         const OnMeasurement& tell) {
  while (const auto setting = search.next(measured)) {
    for (int attempt_number = 1; attempt_number <= kAttempts; ++attempt_number) {
      Result<Measurement> window = attempt(*setting);
      if (!window) {
        return window.error();
      }
      if (!window->settled() && attempt_number == kAttempts) {
        window->notes.push_back(WindowNote::rejected_too_often);
      }
      const bool settled = window->settled();
      measured.push_back(std::move(*window));
      if (const Result<void> told = tell(measured.back()); !told) {
        return told.error();
      }
      if (settled) {
        break;
      }
    }
  }
  return {};
}

Result<Measurement> Tuner::attempt(const Setting& setting) {
  if (const Result<void> applied = parts_.workload.apply(setting); !applied) {
    return applied.error();
  }
  std::optional<Watts> limit;
  if (const auto watts = setting.number(power_limit_knob().name); watts && parts_.limits) {
    limit = Watts(*watts);
    if (const Result<Watts> set = parts_.limits->set(*limit); !set) {
      return set.error();
    }
  }
  bool never_warm = false;
  if (!warm_) {
    const Result<bool> warm = meter_.warm_up();
    if (!warm) {
      return warm.error();
    }
    never_warm = !*warm;
    warm_ = true;
  }
  Result<Measurement> window = meter_.measure(setting, limit);
  if (!window) {
    return window.error();
  }
  window->started += earlier_;
  if (parts_.limits != nullptr && !parts_.limits->check()) {
    window->notes.push_back(WindowNote::limit_reverted);  // the next set() says if it goes on
  }
  if (never_warm) {
    window->notes.push_back(WindowNote::never_settled);
  }
  const auto& clamped = parts_.clamped;
  if (limit && std::find(clamped.begin(), clamped.end(), limit->value()) != clamped.end()) {
    window->notes.push_back(WindowNote::clamped);
  }
  return window;
}

}  // namespace halfwatt

#include "workloads/step_loop.h"

#include <exception>
#include <utility>

#include "base/failure.h"

namespace halfwatt {
namespace {

// A window looks every 0.05 s or once a step: that holds steps of 25 us and more.
constexpr std::size_t kRemembered = 2048;

}  // namespace

void StepLoop::start(Step step) {
  stop();
  const std::lock_guard lock(mutex_);
  asked_to_stop_ = false;
  ends_.clear();
  begun_ = clock_->now();
  state_ = NumericalState::unknown;
  error_.reset();
  step_ = std::move(step);
  thread_ = std::thread([this] { run(); });
}

void StepLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    asked_to_stop_ = true;
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void StepLoop::release() {
  stop();
  step_ = nullptr;
  const std::lock_guard lock(mutex_);
  state_ = NumericalState::unknown;
}

void StepLoop::run() {
  try {
    while (take(step_())) {
    }
  } catch (const Failure& failure) {
    take(failure.error());
  } catch (const std::exception& unforeseen) {
    take(Error{ErrorKind::workload, unforeseen.what()});
  }
}

bool StepLoop::take(const Result<NumericalState>& done) {
  const Seconds now = clock_->now();
  const std::lock_guard lock(mutex_);
  if (!done) {
    error_ = done.error();
    return false;
  }
  ++count_;
  state_ = *done;
  ends_.push_back(now);
  if (ends_.size() > kRemembered) {
    ends_.pop_front();
  }
  return !asked_to_stop_;
}

StepLoop::Reading StepLoop::reading() const {
  const std::lock_guard lock(mutex_);
  return {count_,
          ends_.empty() ? begun_ : ends_.back(),
          {ends_.begin(), ends_.end()},
          state_,
          error_};
}

}  // namespace halfwatt

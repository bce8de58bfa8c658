#include "device/sampler.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <mutex>
#include <utility>

namespace halfwatt {
namespace {

std::chrono::steady_clock::time_point time_point(Seconds time) {
  return std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(time.value())));
}

// Signals are the main thread's business.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct Sampler::Shared {
  Shared(std::vector<std::unique_ptr<Device>> all, const SamplingRules& its_rules)
      : rules(its_rules), devices(std::move(all)), store(devices.size(), rules, clock.now()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(devices.size());
      samplings.emplace_back(*devices[i], rules, share);
    }
  }

  SamplingRules rules;
  SteadyClock clock;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Sampling> samplings;
  SampleStore store;
  std::mutex mutex;  // of the two flags; the store has its own
  std::condition_variable changed;
  bool stopping = false;
  bool ended = false;
};

Sampler::Sampler(std::vector<std::unique_ptr<Device>> devices, SamplingRules rules)
    : shared_(std::make_shared<Shared>(std::move(devices), rules)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([shared = shared_] { run(shared); });
}

Sampler::~Sampler() { stop(); }

void Sampler::run(const std::shared_ptr<Shared>& shared) {
  const auto is_stopping = [&shared] {
    const std::lock_guard lock(shared->mutex);
    return shared->stopping;
  };
  Seconds next = shared->clock.now();
  while (!is_stopping()) {
    for (std::size_t i = 0; i < shared->samplings.size() && !is_stopping(); ++i) {
      shared->samplings[i].round(shared->clock, shared->store, i);
    }
    // A round that took too long is not made up for.
    next = std::max(next + shared->rules.period, shared->clock.now());
    std::unique_lock lock(shared->mutex);
    shared->changed.wait_until(lock, time_point(next), [&] { return shared->stopping; });
  }
  const std::lock_guard lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

bool Sampler::stop() {
  if (!thread_.joinable()) {
    return true;
  }
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  const bool ended = shared_->changed.wait_until(
      lock, time_point(shared_->clock.now() + shared_->rules.patience),
      [this] { return shared_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

std::size_t Sampler::devices() const { return shared_->store.devices(); }

SamplingState Sampler::state(std::size_t device) const {
  return shared_->store.state(device, shared_->clock.now());
}

std::vector<StampedSample> Sampler::since(std::size_t device, Seconds time) const {
  return shared_->store.since(device, time);
}

}  // namespace halfwatt

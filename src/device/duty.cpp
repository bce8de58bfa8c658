#include "device/duty.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

namespace halfwatt {
namespace {

constexpr double kFull = 0.999;  // nothing is stopped for less than the scheduler's own noise
constexpr Seconds kFreeTurn{0.1};
constexpr Seconds kIdleTurn{0.02};  // without a group: until one that is given is slowed
// What a group gets so soon after it was continued is no measure of what it gets for long:
// half as much again in the first 20 ms beside two rivals on two processors, 15 % in the next
// 20, then within 5 % (bench/duty, Linux 6.18).
constexpr Seconds kCatchUp{0.06};
constexpr Seconds kLeastSteady{0.02};
constexpr double kBusy = 0.9;  // of its time; a wait is told only when it is over

}  // namespace

double duty(const DutyModel& model, Watts limit) {
  const double share =
      limit < model.bend
          ? model.share_at_bend * ((limit - model.idle) / (model.bend - model.idle))
          : model.share_at_bend + (1 - model.share_at_bend) *
                                      ((limit - model.bend) / (model.demand - model.bend));
  return std::clamp(share, 0.0, 1.0);
}

Watts draw(const DutyModel& model, double share) {
  if (share < model.share_at_bend) {
    return model.idle + (model.bend - model.idle) * (share / model.share_at_bend);
  }
  return model.bend + (model.demand - model.bend) *
                          ((share - model.share_at_bend) / (1 - model.share_at_bend));
}

Result<LimitFile> DutyCard::open_limit(const std::filesystem::path& path,
                                       const DutyModel& model) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored)
             ? LimitFile::open(path)
             : LimitFile::create(path, model.limits,
                                 model.limits.preset.value_or(model.limits.max));
}

DutyCard::DutyCard(DeviceId id, DutyModel model, LimitFile limit, const Clock& clock)
    : model_(model), limit_(std::move(limit)), clock_(&clock), since_(clock.now()) {
  info_.id = std::move(id);
  info_.name = "simulated card that slows real processes";
  info_.limits = limit_.range();
  info_.energy_tick = model.period;
  info_.energy_error = 0;
  info_.energy_method = EnergyMethod::counter;
  info_.simulated = true;
  // The thread gets no signals: they are for the one that cleans up.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DutyCard::~DutyCard() {
  set_group(std::nullopt);
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DutyCard::set_group(std::optional<pid_t> group) {
  {
    const std::lock_guard lock(mutex_);
    advance();
    if (group_) {
      set_stopped(false);
      ::kill(-*group_, SIGCONT);  // also where another of our kind had stopped it
    }
    group_ = group;
    ++gifts_;
    time_.reset();
    if (group) {
      time_.emplace(*group);
    }
    pace_ = {};
    share_ = {};
  }
  changed_.notify_all();
}

DutyShare DutyCard::share() {
  const std::lock_guard lock(mutex_);
  advance();
  return share_;
}

void DutyCard::run() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  std::unique_lock lock(mutex_);
  while (!ends_) {
    turn(lock);
  }
}

void DutyCard::turn(std::unique_lock<std::mutex>& lock) {
  const unsigned gifts = gifts_;
  advance();
  const Reading begun = reading();
  const DutyShare before = share_;
  const double share = duty(model_, limit_.limit());
  if (!group_ || share >= kFull) {
    free_turn(lock);
  } else {
    limited_turn(lock, share);
  }
  if (is_over(gifts)) {
    return;
  }
  close_turn(begun, before);
  if (group_ && share < kFull) {
    pace_.close_turn(since_ - begun.at, share, share_.worth - before.worth);
  }
}

void DutyCard::free_turn(std::unique_lock<std::mutex>& lock) {
  const unsigned gifts = gifts_;
  const bool was_stopped = stopped_;
  set_stopped(false);
  pace_.forgive();
  const Reading begun = reading();
  wait_until(lock, begun.at + (group_ ? kFreeTurn : kIdleTurn));
  if (group_ && !was_stopped && !is_over(gifts)) {
    const Reading now = reading();
    pace_.saw_steady(now.at - begun.at, now.run - begun.run);
  }
}

// On for the share that the limit allows, less what the last turns gave too much; then off.
void DutyCard::limited_turn(std::unique_lock<std::mutex>& lock, double share) {
  const unsigned gifts = gifts_;
  const Seconds begun = since_;
  const Seconds length =
      model_.period * rng_.uniform(1 - model_.period_jitter, 1 + model_.period_jitter);
  const Seconds on = pace_.time_on(length, share);
  if (on > Seconds(0)) {
    run_for(lock, on);
  }
  if (!is_over(gifts)) {
    set_stopped(on < length);
    wait_until(lock, begun + length);
  }
}

void DutyCard::run_for(std::unique_lock<std::mutex>& lock, Seconds time) {
  const unsigned gifts = gifts_;
  set_stopped(false);
  const Seconds end = since_ + time;
  wait_until(lock, since_ + std::min(time, kCatchUp));
  if (is_over(gifts)) {
    return;
  }
  const Reading begun = reading();
  wait_until(lock, end);
  const Reading now = reading();
  if (!is_over(gifts) && now.at - begun.at > kLeastSteady) {
    pace_.saw_steady(now.at - begun.at, now.run - begun.run);
  }
}

DutyCard::Reading DutyCard::reading() {
  const Seconds run = time_ ? time_->run() : Seconds(0);
  return {clock_->now(), run};
}

// Takes stock of a turn: what the group got is known only when the signals have taken effect.
void DutyCard::close_turn(const Reading& begun, const DutyShare& before) {
  advance();
  const Seconds elapsed = since_ - begun.at;
  const Seconds allowed = share_.allowed - before.allowed;
  double speed = 0;
  if (time_ && allowed > Seconds(0)) {
    const Seconds waited = time_->waited();
    time_->look();
    const Seconds run = time_->run() - begun.run;
    // Who was never stopped got all there was, however little others left.
    const Seconds worth = allowed < elapsed ? pace_.worth(allowed, run) : elapsed;
    share_.worth += worth;
    const Seconds wanted = run + (time_->waited() - waited);
    const double busy = std::min(wanted / (allowed * kBusy), 1.0);
    speed = std::min(worth / elapsed, 1.0) * busy;
  }
  recent_ = speed + (recent_ - speed) * std::exp(-(elapsed / model_.smoothing));
  used_at_tick_ = used_;
}

// Ends early when the group changes or the card ends.
void DutyCard::wait_until(std::unique_lock<std::mutex>& lock, Seconds time) {
  const unsigned gifts = gifts_;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>((time - clock_->now()).value()));
  changed_.wait_until(lock, until, [&] { return ends_ || gifts_ != gifts; });
}

void DutyCard::set_stopped(bool stopped) {
  if (stopped == stopped_ || !group_) {
    return;
  }
  // The time until here counts as what it was: the signal takes effect from now on.
  ::kill(-*group_, stopped ? SIGSTOP : SIGCONT);
  advance();
  stopped_ = stopped;
}

// Brings the state to now. The draw changes only from turn to turn.
void DutyCard::advance() {
  const Seconds now = clock_->now();
  const Seconds elapsed = now - since_;
  if (!(elapsed > Seconds(0))) {
    return;
  }
  if (group_) {
    share_.elapsed += elapsed;
    share_.allowed += stopped_ ? Seconds(0) : elapsed;
    capped_ += stopped_ ? elapsed : Seconds(0);
  }
  used_ += draw(model_, recent_) * elapsed;
  since_ = now;
}

Result<Sample> DutyCard::read() {
  const std::lock_guard lock(mutex_);
  advance();
  const Watts limit = limit_.limit();
  Sample sample;
  sample[SignalId::power] = draw(model_, recent_).value();
  sample[SignalId::requested_limit] = limit.value();
  sample[SignalId::enforced_limit] = limit.value();
  sample[SignalId::power_capped_time] = capped_.value();
  sample[SignalId::throttled_time] = 0;
  sample[SignalId::foreign_processes] = 0;
  return sample;
}

std::optional<Joules> DutyCard::energy() {
  const std::lock_guard lock(mutex_);
  advance();
  return used_at_tick_;
}

}  // namespace halfwatt

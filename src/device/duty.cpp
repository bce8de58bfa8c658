#include "device/duty.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

namespace halfwatt {
namespace {

constexpr Seconds kIdleTurn{0.02};  // without a group: until one that is given is slowed
constexpr Seconds kPoll{0.001};     // of what the group used; a turn may have 7 ms
constexpr Seconds kLook{0.2};       // between looks for new members, which cost some 0.1 ms
constexpr double kStarves = 0.1;    // of the time, waiting for a processor

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
  info_.energy_is_checked = true;  // by its making
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
    run_at_turn_ = lost_ = Seconds(0);
    looked_ = since_;
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
  const Seconds begun = since_;
  if (!group_) {
    wait_until(lock, begun + kIdleTurn);
  } else {
    const double speed = model_.processors * duty(model_, limit_.limit());
    const Seconds length =
        model_.period * rng_.uniform(1 - model_.period_jitter, 1 + model_.period_jitter);
    lost_ += pace_.allow(length * speed);
    run_till(lock, begun + length);
    advance();
    if (!is_over(gifts)) {  // it may have been late
      lost_ += pace_.allow((since_ - begun - length) * speed);
    }
  }
  if (!is_over(gifts)) {
    advance();
    close_turn(since_ - begun);
  }
}

// On until the group used what it may, which is seen only by looking; then off.
void DutyCard::run_till(std::unique_lock<std::mutex>& lock, Seconds end) {
  const unsigned gifts = gifts_;
  const double processors = std::max(std::thread::hardware_concurrency(), 1U);
  while (!is_over(gifts) && clock_->now() < end) {
    take_in_use();
    const bool spent = !(pace_.left() > Seconds(0));
    set_stopped(spent);
    const Seconds pause = std::max(pace_.left() / processors, kPoll);
    wait_until(lock, spent ? end : std::min(clock_->now() + pause, end));
  }
}

void DutyCard::take_in_use() {
  if (time_) {
    const Seconds run = time_->run();
    pace_.use(run - share_.run);
    share_.run = run;
  }
}

// Takes stock of a turn: what the group got is known only when the signals have taken effect.
void DutyCard::close_turn(Seconds elapsed) {
  const Seconds before = run_at_turn_;
  take_in_use();
  run_at_turn_ = share_.run;
  if (time_ && since_ - looked_ >= kLook) {
    look();
  }
  const double speed =
      elapsed > Seconds(0) ? (run_at_turn_ - before) / (elapsed * model_.processors) : 0;
  recent_ = speed + (recent_ - speed) * std::exp(-(elapsed / model_.smoothing));
  used_at_tick_ = used_;
}

// What a group leaves unused while it waits for processors is what others took. One that sleeps
// leaves as much, and wants nothing.
void DutyCard::look() {
  const Seconds waited = time_->waited();
  time_->look();
  if (time_->waited() - waited > (since_ - looked_) * kStarves) {
    starved_ += lost_ / model_.processors;
  }
  lost_ = Seconds(0);
  looked_ = since_;
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
    capped_ += stopped_ && limit_.limit() < model_.demand ? elapsed : Seconds(0);
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
  sample[SignalId::throttled_time] = starved_.value();
  sample[SignalId::foreign_processes] = 0;
  return sample;
}

std::optional<Joules> DutyCard::energy() {
  const std::lock_guard lock(mutex_);
  advance();
  return used_at_tick_;
}

}  // namespace halfwatt

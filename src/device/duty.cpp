#include "device/duty.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

namespace halfwatt {
namespace {

constexpr double kFull = 0.999;  // nothing is stopped for less than the scheduler's own noise
constexpr Seconds kIdleLook{0.02};
constexpr Seconds kMostDebt{0.2};  // what lies further back is forgiven

}  // namespace

double duty(const DutyModel& model, Watts limit) {
  const double share = (limit - model.idle) / (model.demand - model.idle);
  return std::sqrt(std::clamp(share, 0.0, 1.0));
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
    : model_(model),
      limit_(std::move(limit)),
      clock_(&clock),
      since_(clock.now()),
      temperature_(model.ambient) {
  info_.id = std::move(id);
  info_.name = "simulated card that slows real processes";
  info_.limits = limit_.range();
  info_.energy_tick = model.energy_tick;
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
    share_ = {};
    debt_ = Seconds(0);
  }
  changed_.notify_all();
}

DutyShare DutyCard::share() {
  const std::lock_guard lock(mutex_);
  advance();
  return share_;
}

void DutyCard::run() {
  // On time even where others want the processor; a raised priority is not always granted.
  constexpr int kFirst = -15;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kFirst);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  std::unique_lock lock(mutex_);
  while (!ends_) {
    turn(lock);
  }
}

// On for the share that the limit allows, less what the last turns gave too much; then off.
void DutyCard::turn(std::unique_lock<std::mutex>& lock) {
  const unsigned gifts = gifts_;
  advance();
  const double share = duty(model_, limit_.limit());
  const Seconds begun = since_;
  if (!group_ || share >= kFull) {
    set_stopped(false);
    debt_ = Seconds(0);
    wait_until(lock, begun + kIdleLook);
    advance();
    return;
  }
  const Seconds length =
      model_.period * rng_.uniform(1 - model_.period_jitter, 1 + model_.period_jitter);
  const Seconds on(std::max((length * share - debt_).value(), 0.0));
  const Seconds allowed_before = share_.allowed;
  if (on > Seconds(0)) {
    set_stopped(false);
    wait_until(lock, begun + on);
  }
  if (gifts_ != gifts || ends_) {
    return;
  }
  set_stopped(true);
  wait_until(lock, begun + std::max(length, on));
  advance();
  if (gifts_ == gifts) {
    debt_ += (share_.allowed - allowed_before) - (since_ - begun) * share;
    debt_ = Seconds(std::clamp(debt_.value(), -kMostDebt.value(), kMostDebt.value()));
  }
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

Watts DutyCard::draw() const {
  return model_.idle + (model_.demand - model_.idle) * (recent_ * recent_);
}

// Brings the state to now. The draw changes slowly compared with the turns between which this
// is called, so that a straight line from tick to tick is good enough.
void DutyCard::advance() {
  const Seconds now = clock_->now();
  const Seconds elapsed = now - since_;
  if (!(elapsed > Seconds(0))) {
    return;
  }
  const bool runs = group_ && !stopped_;
  if (group_) {
    share_.elapsed += elapsed;
    share_.allowed += runs ? elapsed : Seconds(0);
    capped_ += stopped_ ? elapsed : Seconds(0);
  }
  const double kept = std::exp(-(elapsed / model_.smoothing));
  recent_ = (runs ? 1.0 : 0.0) + (recent_ - (runs ? 1.0 : 0.0)) * kept;
  const Watts power = draw();
  const Seconds tick(std::floor(now / model_.energy_tick) * model_.energy_tick.value());
  if (tick > since_) {
    used_at_tick_ = used_ + power * (tick - since_);
  }
  used_ += power * elapsed;
  const double target = model_.ambient.value() + model_.kelvin_per_watt * power.value();
  temperature_ = Celsius(target + (temperature_.value() - target) *
                                      std::exp(-(elapsed / model_.thermal_time)));
  since_ = now;
}

Result<Sample> DutyCard::read() {
  const std::lock_guard lock(mutex_);
  advance();
  const Watts limit = limit_.limit();
  Sample sample;
  sample[SignalId::power] = draw().value();
  sample[SignalId::requested_limit] = limit.value();
  sample[SignalId::enforced_limit] = limit.value();
  sample[SignalId::temperature] = temperature_.value();
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

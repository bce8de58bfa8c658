#include "guard/guardian_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/remark.h"
#include "guard/controls.h"
#include "guard/limit_bounds.h"
#include "guard/surroundings.h"

namespace halfwatt {
namespace {

// How long whoever asks waits for the watch to have started another guardian.
constexpr auto kRevival = std::chrono::seconds(10);
constexpr int kAttempts = 3;
// How long a card that did not answer the last guardian is tried again in the end.
constexpr Seconds kPatience{2};
constexpr Seconds kPause{0.1};

Error no_sense() { return {ErrorKind::device, "the guardian's answer makes no sense"}; }

Error guardian_died(const std::vector<std::string>& remarks) {
  Error error{ErrorKind::device, "the guardian died, and another one was started"};
  for (const std::string& each : remarks) {
    error.message += "; " + each;
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<GuardianClient>> GuardianClient::start(GuardianOrder order,
                                                              GuardianProcess guardian) {
  if (order.state_dir) {
    order.state_dir = std::filesystem::absolute(*order.state_dir).string();
  }
  std::unique_ptr<GuardianClient> client(new GuardianClient(std::move(order)));
  client->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  client->process_ = std::move(guardian);
  auto remarks = client->first_hold();
  if (!remarks) {
    client->released_ = true;
    return remarks.error();
  }
  client->remarks_ = std::move(*remarks);
  const auto& cards = client->order_.cards;
  if (std::any_of(cards.begin(), cards.end(), is_shared_card)) {
    for (std::string& each : deaths_at_once()) {
      client->remarks_.push_back(std::move(each));
    }
  }
  client->watcher_ = std::thread([raw = client.get()] { raw->watch(); });
  return client;
}

Result<std::unique_ptr<GuardianClient>> GuardianClient::look(GuardianOrder order) {
  std::unique_ptr<GuardianClient> client(new GuardianClient(std::move(order)));
  client->released_ = true;
  LimitControls controls;
  for (const std::string& card : client->order_.cards) {
    const auto control = controls.open(card);
    if (!control) {
      return control.error();
    }
    const Result<LimitState> state = (*control)->look();
    if (!state) {
      return state.error();
    }
    const Result<LimitBounds> bounds = limit_bounds(*state, client->order_.max_limit, card);
    if (!bounds) {
      return bounds.error();
    }
    if (bounds->raised) {
      client->remarks_.push_back(raising_sentence(*state, *bounds, card));
    }
    client->states_.push_back(*state);
  }
  return client;
}

GuardianClient::~GuardianClient() {
  if (const Result<void> done = restore(); !done) {
    remark(done.error().message);
  }
  if (watcher_.joinable()) {
    ::eventfd_write(stop_.number(), 1);
    watcher_.join();
  }
}

Result<void> GuardianClient::spawn() {
  const bool real = std::any_of(order_.cards.begin(), order_.cards.end(), is_shared_card);
  Result<GuardianProcess> started =
      GuardianProcess::start(order_.program, real ? GuardianProcess::Reach::real_cards
                                                  : GuardianProcess::Reach::simulated_cards);
  if (!started) {
    return started.error();
  }
  process_ = std::move(*started);  // the one before it ends
  return {};
}

// A guardian that dies over its first card is replaced like any other; one that refuses is not.
Result<std::vector<std::string>> GuardianClient::first_hold() {
  if (!process_.is_started()) {
    if (const Result<void> started = spawn(); !started) {
      return started.error();
    }
  }
  auto remarks = hold();
  for (int again = 1; !remarks && !alive() && again < kAttempts; ++again) {
    remarks = replace();
  }
  return remarks;
}

// With the mutex held, or before there is a second thread.
std::optional<Message> GuardianClient::exchange(const Message& request, int file) {
  if (!send_message(process_.socket(), request, file)) {
    return std::nullopt;
  }
  return receive_message(process_.socket());
}

Result<std::vector<std::string>> GuardianClient::hold() {
  Message request = {"hold", order_.state_dir.value_or(""), word(order_.max_limit)};
  request.insert(request.end(), order_.cards.begin(), order_.cards.end());
  const std::optional<Message> reply = exchange(request);
  if (!reply) {
    return Error{ErrorKind::device, "the guardian died before it held anything"};
  }
  if (const auto error = error_in(*reply)) {
    return *error;
  }
  const std::size_t cards = order_.cards.size();
  std::vector<LimitState> states;
  for (std::size_t at = 1; at <= cards && at < reply->size(); ++at) {
    if (const auto state = state_in((*reply)[at])) {
      states.push_back(*state);
    }
  }
  if (states.size() != cards) {
    return no_sense();
  }
  if (states_.empty()) {  // what the first guardian found is what was found
    states_ = std::move(states);
    last_.resize(cards);
  }
  return std::vector<std::string>(reply->begin() + 1 + static_cast<std::ptrdiff_t>(cards),
                                  reply->end());
}

Watts GuardianClient::found() const {
  Watts lowest = states_.front().requested;
  for (const LimitState& each : states_) {
    lowest = std::min(lowest, each.requested);
  }
  return lowest;
}

Watts GuardianClient::top() const {
  Watts top{1e9};
  for (const LimitState& each : states_) {
    const Result<LimitBounds> bounds = limit_bounds(each, order_.max_limit, "");
    top = bounds ? std::min(top, bounds->top) : top;
  }
  return top;
}

Watts GuardianClient::bottom() const {
  Watts bottom{0};
  for (const LimitState& each : states_) {
    bottom = each.range ? std::max(bottom, each.range->min) : bottom;
  }
  return bottom;
}

Result<Watts> GuardianClient::set(Watts limit) {
  std::optional<Watts> lowest;
  std::vector<Watts> before;
  for (std::size_t card = 0; card < states_.size(); ++card) {
    {
      const std::lock_guard lock(mutex_);
      before.push_back(last_[card].value_or(states_[card].requested));
    }
    const Result<Watts> in_force = set_card(card, limit);
    if (!in_force) {
      for (std::size_t back = 0; back < card; ++back) {
        (void)set_card(back, before[back]);
      }
      return in_force.error();
    }
    lowest = lowest ? std::min(*lowest, *in_force) : *in_force;
  }
  return *lowest;
}

Result<Watts> GuardianClient::set_card(std::size_t card, Watts limit) {
  const Result<Message> reply =
      ask({"set", fmt::format("{}", card), word(std::optional(limit))});
  if (!reply) {
    return reply.error();
  }
  const auto in_force = reply->size() > 1 ? watts_in((*reply)[1]) : std::nullopt;
  if (!in_force) {
    return no_sense();
  }
  const std::lock_guard lock(mutex_);
  last_[card] = limit;
  return *in_force;
}

// Asks, and where the guardian dies over it asks the next one.
Result<Message> GuardianClient::ask(const Message& request, bool last) {
  std::unique_lock lock(mutex_);
  if (released_) {
    return Error{ErrorKind::device, "the limits were put back already"};
  }
  if (lost_) {
    return *lost_;
  }
  const unsigned deaths = deaths_;
  std::optional<Message> reply = exchange(request);
  if (!reply) {
    revived_.wait_for(lock, kRevival, [&] { return deaths_ != deaths; });
    if (lost_) {
      return *lost_;
    }
    reply = exchange(request);
  }
  released_ = last && reply;
  if (!reply) {
    return Error{ErrorKind::device, "the guardian died, and the next one too"};
  }
  if (const auto error = error_in(*reply)) {
    return *error;
  }
  return std::move(*reply);
}

Result<void> GuardianClient::continue_group(pid_t group) {
  const Result<Message> reply = ask({"continue_group", fmt::format("{}", group)});
  const std::lock_guard lock(mutex_);
  groups_.push_back(group);
  return reply ? Result<void>() : reply.error();
}

void GuardianClient::end_copy(const std::string& mark, int cgroup_kill) {
  const std::lock_guard lock(mutex_);
  copy_ = {mark, Descriptor(::fcntl(cgroup_kill, F_DUPFD_CLOEXEC, STDERR_FILENO + 1))};
  if (!released_ && !lost_) {
    // Where the guardian is dead the watch tells the next one.
    (void)exchange({"end_copy", copy_.mark}, copy_.cgroup_kill.number());
  }
}

// A card that did not answer when the guardian died may do so by now, and nobody else is left.
void GuardianClient::look_for_another_guardian() {
  SteadyClock clock;
  const Seconds end = clock.now() + kPatience;
  while (lost_) {
    if (const auto remarks = replace(); remarks) {
      lost_.reset();
    } else if (clock.now() >= end) {
      return;
    } else {
      clock.sleep_until(clock.now() + kPause);
    }
  }
}

Result<void> GuardianClient::restore() {
  {
    const std::lock_guard lock(mutex_);
    if (released_) {
      return {};
    }
    look_for_another_guardian();
  }
  const Result<Message> reply = ask({"release"}, true);
  return reply ? Result<void>() : reply.error();
}

Result<void> GuardianClient::check() {
  const std::lock_guard lock(mutex_);
  if (lost_) {
    return *lost_;
  }
  if (disturbance_) {
    const Error error = *disturbance_;
    disturbance_.reset();
    return error;
  }
  return {};
}

bool GuardianClient::alive() const {
  const std::lock_guard lock(mutex_);
  pollfd end{process_.socket(), POLLIN, 0};
  return !lost_ && !released_ && ::poll(&end, 1, 0) == 0;
}

pid_t GuardianClient::guardian_pid() const {
  const std::lock_guard lock(mutex_);
  return process_.pid();
}

void GuardianClient::watch() {
  // Signals are for the thread that knows what to do with them.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    pollfd watched[] = {{stop_.number(), POLLIN, 0}, {0, POLLRDHUP, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (released_ || lost_) {
        return;
      }
      watched[1].fd = process_.socket();
    }
    if (::poll(watched, std::size(watched), -1) < 0) {
      continue;
    }
    if (watched[0].revents != 0) {
      return;
    }
    if (watched[1].revents != 0) {
      revive();
    }
  }
}

// Another guardian that holds what the dead one held, which puts back what that one left.
Result<std::vector<std::string>> GuardianClient::replace() {
  if (const Result<void> started = spawn(); !started) {
    return started.error();
  }
  auto remarks = hold();
  if (remarks && !tell_next()) {
    return Error{ErrorKind::device, "the next guardian died too"};
  }
  return remarks;
}

bool GuardianClient::tell_next() {
  for (const pid_t group : groups_) {
    if (!exchange({"continue_group", fmt::format("{}", group)})) {
      return false;
    }
  }
  return copy_.mark.empty() ||
         exchange({"end_copy", copy_.mark}, copy_.cgroup_kill.number()).has_value();
}

void GuardianClient::revive() {
  const std::lock_guard lock(mutex_);
  if (released_) {
    return;
  }
  for (const pid_t group : groups_) {
    ::kill(-group, SIGCONT);
  }
  auto remarks = replace();
  for (int again = 1; !remarks && again < kAttempts; ++again) {
    remarks = replace();
  }
  if (remarks) {
    disturbance_ = guardian_died(*remarks);
    for (auto& each : last_) {
      each.reset();
    }
  } else {
    lost_ =
        Error{ErrorKind::not_restored,
              fmt::format("the guardian died and no other one could take over: {}; halfwatt "
                          "restore puts limits back",
                          remarks.error().message)};
  }
  ++deaths_;
  revived_.notify_all();
}

}  // namespace halfwatt

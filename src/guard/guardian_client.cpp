#include "guard/guardian_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/remark.h"
#include "guard/controls.h"
#include "guard/guardian_process.h"
#include "guard/limit_bounds.h"
#include "guard/surroundings.h"

namespace halfwatt {
namespace {

// How long whoever asks waits for the watch to have started another guardian.
constexpr auto kRevival = std::chrono::seconds(10);
constexpr int kAttempts = 3;

Error no_sense() { return {ErrorKind::device, "the guardian's answer makes no sense"}; }

Error guardian_died(const std::vector<std::string>& remarks) {
  Error error{ErrorKind::device, "the guardian died, and another one was started"};
  for (const std::string& each : remarks) {
    error.message += "; " + each;
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<GuardianClient>> GuardianClient::start(GuardianOrder order) {
  if (order.state_dir) {
    order.state_dir = std::filesystem::absolute(*order.state_dir).string();
  }
  std::unique_ptr<GuardianClient> client(new GuardianClient(std::move(order)));
  client->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  auto remarks = client->spawn_and_hold();
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
  reap();
}

Result<void> GuardianClient::spawn() {
  Result<GuardianProcess> started = start_guardian(order_.program, order_.cards);
  if (!started) {
    return started.error();
  }
  socket_ = std::move(started->socket);
  pid_ = started->pid;
  return {};
}

// A guardian that dies over its first card is replaced like any other; one that refuses is not.
Result<std::vector<std::string>> GuardianClient::spawn_and_hold() {
  if (const Result<void> started = spawn(); !started) {
    return started.error();
  }
  auto remarks = hold();
  for (int again = 1; !remarks && !alive() && again < kAttempts; ++again) {
    remarks = replace();
  }
  return remarks;
}

// With the mutex held, or before there is a second thread.
std::optional<Message> GuardianClient::exchange(const Message& request) {
  if (!send_message(socket_.number(), request)) {
    return std::nullopt;
  }
  return receive_message(socket_.number());
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

Result<void> GuardianClient::restore() {
  {
    const std::lock_guard lock(mutex_);
    if (released_) {
      return {};
    }
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
  pollfd end{socket_.number(), POLLIN, 0};
  return !lost_ && !released_ && ::poll(&end, 1, 0) == 0;
}

pid_t GuardianClient::guardian_pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
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
      watched[1].fd = socket_.number();
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
  const pid_t dead = pid_;
  if (const Result<void> started = spawn(); !started) {
    return started.error();
  }
  ::waitpid(dead, nullptr, 0);
  auto remarks = hold();
  for (const pid_t group : groups_) {
    if (remarks && !exchange({"continue_group", fmt::format("{}", group)})) {
      return Error{ErrorKind::device, "the next guardian died too"};
    }
  }
  return remarks;
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

void GuardianClient::reap() {
  socket_.close();
  if (pid_ > 0) {
    ::waitpid(pid_, nullptr, 0);
  }
}

}  // namespace halfwatt

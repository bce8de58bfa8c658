#include "guard/lasting_limit.h"

#include <fmt/format.h>

#include <filesystem>

#include "guard/card_lock.h"
#include "guard/controls.h"
#include "guard/folders.h"
#include "guard/journal.h"

namespace halfwatt {
namespace {

constexpr Seconds kPatience{3};

/// A card that is locked and may take its new limit.
struct Ready {
  std::string card;
  CardLock lock;
  std::unique_ptr<LimitControl> control;
  LimitState before;
  Watts limit;
  Journal journal;
};

Result<Watts> wanted(const LastingLimit& asked, const LimitState& state) {
  if (state.sliced) {
    return Error{
        ErrorKind::device,
        fmt::format("{}: MIG is on, and a power limit would hit every slice", asked.card)};
  }
  if (!state.range) {
    return Error{ErrorKind::device,
                 fmt::format("{}: the card does not tell which limits it takes", asked.card)};
  }
  const LimitRange& range = *state.range;
  if (!asked.limit && !range.preset) {
    return Error{ErrorKind::device,
                 fmt::format("{}: the card does not tell its default; needed a number from "
                             "{:g} to {:g} W",
                             asked.card, range.min.value(), range.max.value())};
  }
  const Watts limit = asked.limit ? *asked.limit : *range.preset;
  if (!(limit >= range.min && limit <= range.max)) {
    return bad_input(fmt::format("limit {:g}: {} takes {:g}-{:g} W", limit.value(), asked.card,
                                 range.min.value(), range.max.value()));
  }
  return limit;
}

Result<Ready> prepare(const LastingLimit& asked,
                      LimitControls& controls,
                      const std::optional<std::string>& state_dir,
                      pid_t by) {
  const GuardFolders folders = guard_folders(state_dir, is_shared_card(asked.card));
  auto lock = CardLock::take(folders.locks, asked.card, holder(by), kPatience);
  if (!lock) {
    return lock.error();
  }
  auto control = controls.open(asked.card);
  if (!control) {
    return control.error();
  }
  const Result<LimitState> before = (*control)->look();
  if (!before) {
    return before.error();
  }
  const Result<Watts> limit = wanted(asked, *before);
  if (!limit) {
    return limit.error();
  }
  return Ready{asked.card, std::move(*lock), std::move(*control),
               *before,    *limit,           Journal(folders.state)};
}

Result<Watts> write(Ready& ready) {
  if (const Result<void> written = ready.control->write(ready.limit); !written) {
    return written.error();
  }
  Result<Watts> now = ready.control->read();
  if (now && !same_limit(*now, ready.limit)) {
    return Error{ErrorKind::device,
                 fmt::format("{}: was set to {:g} W and says {:g} W: the card or its driver "
                             "does not take it",
                             ready.card, ready.limit.value(), now->value())};
  }
  (void)ready.journal.close(ready.card);
  return now;
}

// Unless the card has what it had, or what somebody else set. Returns the end of a message
// where it did not go back.
std::string take_back(Ready& ready) {
  const Watts had = ready.before.requested;
  Result<Watts> now = ready.control->read();
  if (now && may_be_rounded(ready.limit, *now)) {
    (void)ready.control->write(had);
    now = ready.control->read();
  }
  return now && same_limit(*now, had)
             ? ""
             : fmt::format(
                   "; {}: {}, and had {:g} W", ready.card,
                   now ? fmt::format("stands at {:g} W", now->value()) : now.error().message,
                   had.value());
}

}  // namespace

Result<std::vector<LimitChange>> set_lasting(const std::vector<LastingLimit>& limits,
                                             const std::optional<std::string>& state_dir,
                                             pid_t by) {
  LimitControls controls;
  std::vector<Ready> cards;
  for (const LastingLimit& asked : limits) {
    Result<Ready> ready = prepare(asked, controls, state_dir, by);
    if (!ready) {
      return ready.error();
    }
    cards.push_back(std::move(*ready));
  }
  std::vector<LimitChange> changes;
  for (Ready& each : cards) {
    const Result<Watts> now = write(each);
    if (!now) {
      Error error = now.error();
      for (std::size_t back = 0; back <= changes.size(); ++back) {
        error.message += take_back(cards[back]);
      }
      return error;
    }
    changes.push_back({each.card, each.before, *now});
  }
  return changes;
}

Message answer_lasting(const Message& request, pid_t by) {
  if (request.size() < 4) {
    return answer(bad_input("leave: needed a state folder, a limit and cards"));
  }
  std::vector<LastingLimit> limits;
  for (std::size_t at = 3; at < request.size(); ++at) {
    limits.push_back({request[at], watts_in(request[2])});
  }
  const auto state_dir = request[1].empty() ? std::nullopt : std::optional(request[1]);
  const auto changes = set_lasting(limits, state_dir, by);
  if (!changes) {
    return answer(changes.error());
  }
  Message reply = {"ok"};
  for (const LimitChange& each : *changes) {
    reply.push_back(word(each.before));
    reply.push_back(word(std::optional(each.now)));
  }
  return reply;
}

Result<std::vector<LimitChange>> ask_for_lasting(const GuardianProcess& guardian,
                                                 const std::vector<LastingLimit>& limits,
                                                 const std::optional<std::string>& state_dir) {
  if (limits.empty()) {
    return Error{ErrorKind::device, "there is no card whose limit could be set"};
  }
  Message request = {"leave", state_dir ? std::filesystem::absolute(*state_dir).string() : "",
                     word(limits.front().limit)};
  for (const LastingLimit& each : limits) {
    request.push_back(each.card);
  }
  const Result<void> sent = send_message(guardian.socket(), request);
  const auto reply = sent ? receive_message(guardian.socket()) : std::nullopt;
  if (!reply) {
    return Error{ErrorKind::device,
                 "the guardian died over it; halfwatt limit shows what is set"};
  }
  if (const auto error = error_in(*reply)) {
    return *error;
  }
  std::vector<LimitChange> changes;
  for (std::size_t at = 0; at < limits.size() && 2 * at + 2 < reply->size(); ++at) {
    const auto before = state_in((*reply)[2 * at + 1]);
    const auto now = watts_in((*reply)[2 * at + 2]);
    if (before && now) {
      changes.push_back({limits[at].card, *before, *now});
    }
  }
  return changes;
}

}  // namespace halfwatt

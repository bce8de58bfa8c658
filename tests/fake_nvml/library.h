#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fake_nvml/abi.h"
#include "fake_nvml/history.h"
#include "fake_nvml/script.h"
#include "fake_nvml/shared_state.h"

/// Behind the C functions: one session from the first Init to the last Shutdown.
namespace halfwatt::fake_nvml {

/// What the script's faults do to one call.
struct Effects {
  std::optional<Return> code;
  double block_s = 0;
  bool ignore = false;
  std::optional<double> revert_after_s;
  std::optional<std::uint32_t> set_instead_mw;
  int raise_before = 0;
  int raise_after = 0;
};

/// A card or a MIG slice of it.
struct Handle {
  std::size_t card = 0;
  std::optional<std::size_t> slice;
};

class Session {
 public:
  /// Throws std::runtime_error with one line for a script or state that cannot be used.
  Session(Script script, std::uint32_t generation);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The first Init has succeeded: this process counts as a client.
  void begin();

  const Script& script() const { return script_; }
  SharedState& state() { return state_; }

  /// Handles of an earlier session are refused, as the driver refuses them.
  std::optional<Handle> find(Device device) const;
  Device device(Handle handle) const;

  /// Everything a call goes through before it answers: it is counted, takes its time, meets
  /// its faults.
  Effects enter(std::optional<std::size_t> card, std::size_t symbol);
  /// The faults of one field of nvmlDeviceGetFieldValues.
  std::optional<Return> field_fault(std::size_t card, std::uint32_t field);

  /// For one thread at a time: hold card_mutex().
  History& history(std::size_t card) { return histories_[card].history; }
  std::mutex& card_mutex(std::size_t card) { return histories_[card].mutex; }

 private:
  struct Locked {
    Locked(const Card& card, SharedState& state, std::size_t index)
        : history(card, state, index) {}
    std::mutex mutex;
    History history;
  };
  struct Met {  ///< what a fault is matched with
    std::optional<std::size_t> card;
    std::size_t symbol;
    std::optional<std::uint32_t> field;
    std::uint64_t number;
  };
  bool meets(const Fault& fault, const Met& met, double now_s) const;
  Effects effects(const Met& met) const;

  Script script_;
  std::uint32_t generation_;
  SharedState state_;
  std::deque<Locked> histories_;
  std::int32_t client_ = 0;
};

/// The session of this process, or null before Init and after the last Shutdown.
std::shared_ptr<Session> session();
/// Counts one Init more; the first one reads the script that HALFWATT_FAKE_NVML names.
Return enter_library(std::size_t symbol);
Return leave_library(std::size_t symbol);

/// One call about one card, its history caught up and held until the call returns.
struct Call {
  Session& session;
  Handle handle;
  Effects effects;
  std::int64_t now_ns;

  const Card& card() const { return session.script().cards[handle.card]; }
  History& history() { return session.history(handle.card); }
  Span now() { return history().at(now_ns); }
};

/// Whether a call has an answer for a MIG slice too.
enum class Reach { whole_card, slices_too };

/// Runs `body(session)` as the answer to a call that concerns no card.
template <class Body>
Return answer(std::size_t symbol, Body body) {
  const std::shared_ptr<Session> open = session();
  if (!open) {
    return Return::uninitialized;
  }
  const Effects effects = open->enter(std::nullopt, symbol);
  return effects.code ? *effects.code : body(*open);
}

void raise_if_asked(int signal);
/// Says on stderr why the fake cannot go on.
Return give_up(const std::exception& problem);

/// Runs `body(call)` as the answer to a call about `device`.
template <class Body>
Return answer(std::size_t symbol, Device device, Reach reach, Body body) {
  const std::shared_ptr<Session> open = session();
  if (!open) {
    return Return::uninitialized;
  }
  const std::optional<Handle> handle = open->find(device);
  if (!handle) {
    return Return::invalid_argument;
  }
  if (handle->slice && reach == Reach::whole_card) {
    return Return::not_supported;
  }
  const Effects effects = open->enter(handle->card, symbol);
  if (effects.code) {
    return *effects.code;
  }
  try {
    const std::lock_guard lock(open->card_mutex(handle->card));
    Call call{*open, *handle, effects, open->state().now_ns()};
    call.history().catch_up(call.now_ns);
    const Return result = body(call);
    raise_if_asked(effects.raise_after);
    return result;
  } catch (const std::exception& problem) {
    return give_up(problem);
  }
}

/// Copies `text` with its end; insufficient_size if it does not fit.
Return copy_text(const std::string& text, char* to, std::uint32_t size);

/// Stores `value` where the caller wants it; invalid_argument without a place.
template <class T, class From>
Return store(T* to, From value) {
  if (to == nullptr) {
    return Return::invalid_argument;
  }
  *to = static_cast<T>(value);
  return Return::success;
}

}  // namespace halfwatt::fake_nvml

/// Before every function that programs look up by name.
#define HALFWATT_NVML_API extern "C" __attribute__((visibility("default")))

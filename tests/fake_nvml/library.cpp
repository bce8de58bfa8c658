#include "fake_nvml/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

/// What a C library with Init and Shutdown cannot do without: one of it in a process.
struct Library {
  std::mutex mutex;
  std::shared_ptr<Session> session;
  std::size_t inits = 0;
  std::atomic<std::uint32_t> generation = 0;
};

Library& library() {
  // Never destroyed: threads may be inside when the process ends.
  static Library* const one = new Library;
  return *one;
}

bool names(const std::string& pattern, std::string_view symbol) {
  if (pattern.ends_with('*')) {
    return symbol.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  }
  return symbol == pattern;
}

void spend_us(double time_us, bool busy) {
  if (time_us <= 0) {
    return;
  }
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::llround(time_us * 1000));
  if (!busy) {
    std::this_thread::sleep_until(end);
  }
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Bits of a Device: generation, slice plus 1, card plus 1.
constexpr unsigned kSliceShift = 12;
constexpr unsigned kGenerationShift = 24;
constexpr std::uintptr_t kPart = (1U << kSliceShift) - 1;

}  // namespace

Session::Session(Script script, std::uint32_t generation)
    : script_(std::move(script)), generation_(generation), state_(script_) {
  for (std::size_t i = 0; i < script_.cards.size(); ++i) {
    histories_.emplace_back(script_.cards[i], state_, i);
  }
}

Session::~Session() {
  if (client_ != 0) {
    state_.remove_client(client_);
  }
}

void Session::begin() {
  if (script_.unloads_without_clients && state_.was_left()) {
    for (Locked& locked : histories_) {
      locked.history.catch_up(state_.now_ns());
      if (locked.history.at(state_.now_ns()).persistence == 0) {
        Event reload{};
        reload.kind = EventKind::reload;
        reload.source = Source::revert;
        reload.has_effect = 1;
        locked.history.append(reload);
      }
    }
  }
  client_ = getpid();
  state_.add_client(client_);
}

Device Session::device(Handle handle) const {
  const std::uintptr_t bits = (std::uintptr_t{generation_} << kGenerationShift) |
                              ((handle.slice ? *handle.slice + 1 : 0) << kSliceShift) |
                              (handle.card + 1);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): opaque to callers, never followed
  return reinterpret_cast<Device>(bits);
}

std::optional<Handle> Session::find(Device device) const {
  const auto bits = reinterpret_cast<std::uintptr_t>(device);
  const std::uintptr_t card = bits & kPart;
  const std::uintptr_t slice = (bits >> kSliceShift) & kPart;
  if (bits >> kGenerationShift != generation_ || card == 0 || card > script_.cards.size() ||
      slice > script_.cards[card - 1].mig_slices) {
    return std::nullopt;
  }
  return Handle{card - 1, slice != 0 ? std::optional(slice - 1) : std::nullopt};
}

bool Session::meets(const Fault& fault, const Met& met, double now_s) const {
  const bool card_fits = !fault.card || (met.card && *met.card == *fault.card);
  const bool time_fits =
      now_s >= fault.from_s.value_or(now_s) && now_s < fault.until_s.value_or(now_s + 1);
  const bool number_fits = met.number >= fault.from_call.value_or(met.number) &&
                           met.number <= fault.until_call.value_or(met.number);
  return names(fault.symbol, kSymbols.at(met.symbol)) && fault.field == met.field &&
         card_fits && time_fits && number_fits;
}

Effects Session::effects(const Met& met) const {
  Effects all;
  const double now_s = static_cast<double>(state_.now_ns()) / 1e9;
  for (std::size_t i = 0; i < script_.faults.size(); ++i) {
    const Fault& fault = script_.faults[i];
    if (!state_.is_armed(i) || !meets(fault, met, now_s)) {
      continue;
    }
    if (fault.code && !all.code) {
      all.code = Return{*fault.code};
    }
    all.block_s += fault.block_s;
    all.ignore = all.ignore || fault.ignore;
    all.revert_after_s = fault.revert_after_s ? fault.revert_after_s : all.revert_after_s;
    all.set_instead_mw = fault.set_instead_mw ? fault.set_instead_mw : all.set_instead_mw;
    all.raise_before = fault.raise_before != 0 ? fault.raise_before : all.raise_before;
    all.raise_after = fault.raise_after != 0 ? fault.raise_after : all.raise_after;
  }
  return all;
}

Effects Session::enter(std::optional<std::size_t> card, std::size_t symbol) {
  const std::uint64_t number = state_.count_call(card, symbol);
  const Effects all = effects({card, symbol, std::nullopt, number});
  const auto own = script_.symbol_us.empty()
                       ? script_.symbol_us.end()
                       : script_.symbol_us.find(std::string(kSymbols.at(symbol)));
  spend_us(own != script_.symbol_us.end() ? own->second : script_.call_us,
           script_.call_is_busy);
  raise_if_asked(all.raise_before);
  if (all.block_s > 0) {
    state_.wait_until_ns(state_.now_ns() + std::llround(all.block_s * 1e9));
  }
  return all;
}

std::optional<Return> Session::field_fault(std::size_t card, std::uint32_t field) {
  constexpr std::size_t kGetFields = symbol("nvmlDeviceGetFieldValues");
  return effects({card, kGetFields, field, state_.calls(card, kGetFields)}).code;
}

std::shared_ptr<Session> session() {
  const std::lock_guard lock(library().mutex);
  return library().session;
}

Return enter_library(std::size_t symbol) {
  Library& all = library();
  const char* const path = std::getenv("HALFWATT_FAKE_NVML");
  if (path == nullptr) {
    std::fputs("fake NVML: HALFWATT_FAKE_NVML names no script\n", stderr);
    return Return::driver_not_loaded;
  }
  try {
    std::shared_ptr<Session> open = session();
    if (!open) {
      open = std::make_shared<Session>(read_script(path), ++all.generation);
    }
    // Not under the lock: the fault may be an Init that takes half a minute.
    const Effects effects = open->enter(std::nullopt, symbol);
    if (effects.code) {
      return *effects.code;
    }
    const std::lock_guard lock(all.mutex);
    if (all.inits == 0) {
      open->begin();
      all.session = std::move(open);
    }
    ++all.inits;
    return Return::success;
  } catch (const std::exception& problem) {
    return give_up(problem);
  }
}

Return leave_library(std::size_t symbol) {
  const Return result = answer(symbol, [](Session&) { return Return::success; });
  if (result != Return::success) {
    return result;
  }
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.inits > 0 && --all.inits == 0) {
    all.session.reset();
  }
  return Return::success;
}

void raise_if_asked(int signal) {
  if (signal != 0) {
    // To the process, not to the thread: as anybody else would send it.
    kill(getpid(), signal);
  }
}

Return give_up(const std::exception& problem) {
  // Once: a program may go on calling for ever.
  static std::atomic<bool> was_said = false;
  if (!was_said.exchange(true)) {
    std::fputs(fmt::format("fake NVML: {}\n", problem.what()).c_str(), stderr);
  }
  return Return::unknown;
}

Return copy_text(const std::string& text, char* to, std::uint32_t size) {
  if (to == nullptr) {
    return Return::invalid_argument;
  }
  if (text.size() + 1 > size) {
    return Return::insufficient_size;
  }
  std::memcpy(to, text.c_str(), text.size() + 1);
  return Return::success;
}

}  // namespace halfwatt::fake_nvml

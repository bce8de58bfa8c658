#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fake_nvml/script.h"

/// What all processes that use the fake share, in one mapped file.
///
/// Any of them may be killed or stopped between any two instructions, so nothing is ever
/// locked. A card's history is a list of events that only grows: an event is written in a place
/// of its own, and one compare-and-swap of the next free slot makes it true, or somebody else
/// was faster. Everything that a card shows follows from its history, the script and the clock.
namespace halfwatt::fake_nvml {

enum class EventKind : std::uint32_t {
  limit,          ///< value: what was asked for, in mW
  persistence,    ///< value: 0 or 1
  demand,         ///< value: mW
  cap,            ///< value: mW, 0 for none
  extra_reasons,  ///< value: mask
  energy_stuck,
  energy_runs,
  energy_reset,
  reload,
};

enum class Source : std::uint32_t {
  call,    ///< a call of the library
  test,    ///< FakeNvml
  script,  ///< Card::happenings
  revert,  ///< the driver took a set back: Fault::revert_after_s
};

struct Event {
  std::int64_t time_ns;  ///< since the state began
  EventKind kind;
  Source source;
  std::int32_t pid;
  std::uint32_t value;
  std::uint32_t in_force;  ///< what the event puts in place, where that is not `value`
  std::uint32_t has_effect;
  std::uint32_t result;       ///< nvmlReturn_t that the caller got
  std::uint32_t cause;        ///< script: which happening and key, plus 1; else 0
  std::int64_t revert_at_ns;  ///< 0: never
  std::uint64_t reserved;
};
static_assert(sizeof(Event) == 56);

/// A process as the shared state holds it; `bytes` ~0 is unknown.
struct SharedProcess {
  std::uint32_t pid;
  std::uint32_t kind;
  std::uint64_t bytes;
  std::uint32_t sm_percent;
  std::uint32_t memory_percent;
};

struct Layout;

/// The mapped file. Its functions may be called from any thread and process.
class SharedState {
 public:
  /// Opens `script.state`, or makes it: the clock begins then. Throws std::runtime_error for a
  /// file that is no state of this script.
  explicit SharedState(const Script& script);

  /// Since the state began; virtual if the script says so.
  std::int64_t now_ns() const;
  /// CLOCK_MONOTONIC when the state began.
  std::int64_t began_ns() const;
  void advance_ns(std::int64_t step_ns);
  /// Returns when now_ns() has come to `time_ns`, on either clock.
  void wait_until_ns(std::int64_t time_ns) const;

  /// Counts a call; returns its number from 1. Calls that concern no card have none.
  std::uint64_t count_call(std::optional<std::size_t> card, std::size_t symbol);
  std::uint64_t calls(std::optional<std::size_t> card, std::size_t symbol) const;

  bool is_armed(std::size_t fault) const;
  void arm(std::size_t fault, bool armed);

  /// The event in `slot`, if the history has come that far.
  const Event* event(std::size_t card, std::size_t slot) const;
  /// Makes `event` the one in `slot`; false if another one is there already. Throws
  /// std::runtime_error when the history is full.
  bool publish(std::size_t card, std::size_t slot, const Event& event);

  /// Whether processes have had the library open and none of them lives and has it still.
  bool was_left() const;
  void add_client(std::int32_t pid);
  void remove_client(std::int32_t pid);

  std::vector<SharedProcess> processes(std::size_t card) const;
  /// For one writer only. At most 64.
  void set_processes(std::size_t card, std::span<const SharedProcess> processes);

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(void* address) const;
  };
  std::atomic<std::uint64_t>& counter(std::optional<std::size_t> card,
                                      std::size_t symbol) const;

  std::size_t card_count_;
  std::unique_ptr<void, Unmap> mapping_;
  Layout* layout_;  ///< the start of the mapping
};

/// `process` as the shared state holds it.
SharedProcess shared(const Process& process);

}  // namespace halfwatt::fake_nvml

#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "fake_nvml/history.h"
#include "fake_nvml/script.h"
#include "fake_nvml/shared_state.h"

namespace halfwatt {

/// Which library a program finds under the name of NVML.
enum class NvmlVariant {
  modern,   ///< every symbol
  old,      ///< about driver 450: no versioned structs, no MemoryInfo_v2, no processes_v3
  ancient,  ///< no suffixed symbol, no fields, no energy counter
  no_nvml,  ///< loads, and has no symbol at all
};

/// An attempt to set a limit, by whomever.
struct LimitWrite {
  std::int64_t time_ns = 0;  ///< CLOCK_MONOTONIC; with a virtual clock, since the state began
  std::int32_t pid = 0;      ///< 0: the script or the driver
  fake_nvml::Source source = fake_nvml::Source::call;
  std::uint32_t asked_mw = 0;
  bool accepted = false;                     ///< the caller was told success
  std::optional<std::uint32_t> in_force_mw;  ///< what it put in place; absent: it did nothing
};

/// A fake NVML for one test: a script and its state in a folder of their own, gone with the
/// object. Its clock starts here. It shares the state with every process that gets its
/// environment, and never loads the library itself.
class FakeNvml {
 public:
  /// One card as fake_nvml::Card describes it.
  FakeNvml();
  explicit FakeNvml(fake_nvml::Script script);
  ~FakeNvml();
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  /// `count` default cards.
  static fake_nvml::Script cards(std::size_t count);

  static std::string library(NvmlVariant variant = NvmlVariant::modern);
  const std::string& script_path() const { return script_path_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// `HALFWATT_NVML=...` and `HALFWATT_FAKE_NVML=...`, for a child.
  std::vector<std::string> environment(NvmlVariant variant = NvmlVariant::modern) const;
  /// Puts the same into this process; the destructor takes it out again.
  void enter_environment(NvmlVariant variant = NvmlVariant::modern);

  const fake_nvml::Card& card(std::size_t card = 0) const { return script_.cards.at(card); }
  std::uint32_t requested_mw(std::size_t card = 0);
  std::uint32_t enforced_mw(std::size_t card = 0);
  bool persistence(std::size_t card = 0);
  /// What really was drawn since the state began, whatever the counter says.
  Joules drawn(std::size_t card = 0);
  /// Every attempt to set the limit so far, in order.
  std::vector<LimitWrite> writes(std::size_t card = 0);
  /// How many accepted sets by a program replaced a value that somebody else (FakeNvml, the
  /// script or the driver) had put in place.
  std::size_t overwritten_foreign(std::size_t card = 0);
  /// The whole history, also of persistence, demand and the rest.
  std::vector<fake_nvml::Event> events(std::size_t card = 0);
  /// How often a function was called for `card`, by all processes.
  std::uint64_t calls(std::string_view symbol, std::optional<std::size_t> card = 0) const;

  /// Sets the limit as somebody else would.
  void set_requested(std::uint32_t limit_mw, std::size_t card = 0);
  void set_demand(Watts demand, std::size_t card = 0);
  void happen(const fake_nvml::Happening& happening, std::size_t card = 0);
  void set_processes(const std::vector<fake_nvml::Process>& processes, std::size_t card = 0);
  /// Switches the script's fault number `fault` on or off.
  void arm(std::size_t fault) { state_.arm(fault, true); }
  void disarm(std::size_t fault) { state_.arm(fault, false); }
  /// Moves a virtual clock.
  void advance(Seconds step);
  Seconds now() const { return Seconds(static_cast<double>(state_.now_ns()) / 1e9); }

 private:
  fake_nvml::Span span(std::size_t card);

  std::filesystem::path folder_;
  std::string script_path_;
  fake_nvml::Script script_;
  fake_nvml::SharedState state_;
  std::deque<fake_nvml::History> histories_;
  bool entered_ = false;
};

}  // namespace halfwatt

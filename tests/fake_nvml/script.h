#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What the fake plays: read from JSON by the library, written by FakeNvml. The members are the
/// keys of the file. Units are in the names, as at every C border.
namespace halfwatt::fake_nvml {

/// A process that the card reports. Nonsense is allowed: that is what some drivers report.
struct Process {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> bytes = {};  ///< absent: reported as ~0, "unknown"
  std::uint32_t kind = 0;                   ///< 0 compute, 1 graphics, 2 MPS
  std::uint32_t sm_percent = 0;
  std::uint32_t memory_percent = 0;
};

/// Something that happens to a card from outside, at a time or when a test says so.
struct Happening {
  double at_s = 0;                              ///< since the state began; only in scripts
  std::optional<std::uint32_t> limit_mw = {};   ///< somebody else sets the limit
  std::optional<std::uint32_t> demand_mw = {};  ///< what the work would draw without a limit
  std::optional<std::uint32_t> cap_mw = {};     ///< enforced below the requested limit; 0: none
  std::optional<std::uint32_t> persistence = {};    ///< 0 or 1
  std::optional<std::uint32_t> extra_reasons = {};  ///< event reasons beside idle and power cap
  std::optional<std::string> energy = {};           ///< the counter: "stuck", "runs" or "reset"
  std::optional<bool> reload = {};  ///< the driver: limit to default, counter to 0
};

/// One card. The defaults resemble an RTX 3090 under load.
struct Card {
  std::string name = "NVIDIA Fake 3090";
  std::string uuid = {};  ///< absent: made from the index
  std::string serial = {};
  std::string vbios = "94.02.42.00.00";
  std::string pci_bus_id = {};  ///< absent: made from the index
  std::uint32_t pci_device_id = 0x220410de;
  std::optional<std::uint32_t> minor_number = {};  ///< absent: the index
  std::uint32_t architecture = 7;
  int compute_major = 8;
  int compute_minor = 6;

  std::uint32_t min_mw = 100'000;
  std::uint32_t max_mw = 390'000;
  std::uint32_t default_mw = 350'000;
  std::optional<std::uint32_t> found_mw =
      {};                           ///< the limit before anybody came; absent: default
  std::uint32_t cap_mw = 0;         ///< enforced below the requested limit; 0: none
  std::uint32_t limit_step_mw = 1;  ///< a set value is rounded down to this
  bool persistence = true;

  std::uint32_t demand_mw = 320'000;
  std::uint32_t swing_ms = 0;      ///< the demand alternates with this period; 0: it is steady
  std::uint32_t swing_low_mw = 0;  ///< between demand_mw and this
  double swing_high_share = 0.5;   ///< first high, for this share of the period
  std::uint32_t idle_below_mw = 40'000;  ///< a demand below this is an idle card
  std::uint32_t power_period_ms = 100;
  std::uint32_t power_window_ms = 25;
  std::uint32_t power_delay_ms = 0;  ///< readings are as old as this
  std::uint32_t average_ms = 1000;
  bool power_usage_is_average = true;  ///< nvmlDeviceGetPowerUsage: Ampere and newer
  std::uint32_t energy_tick_ms = 100;
  std::uint32_t energy_quantum_mj = 1;
  std::uint64_t energy_start_mj = 1'000'000;
  double energy_scale = 1;  ///< counter against truth
  bool no_energy_counter = false;

  std::uint32_t max_sm_mhz = 1980;
  std::uint32_t idle_sm_mhz = 210;
  std::uint32_t memory_mhz = 9751;
  std::int32_t ambient_c = 25;
  double kelvin_per_watt = 0.12;
  std::int32_t slowdown_c = 95;
  std::uint32_t fans = 1;
  std::uint64_t memory_bytes = 24ULL << 30;
  std::uint64_t memory_used_bytes = 8ULL << 30;
  std::uint64_t memory_reserved_bytes = 256ULL << 20;
  std::uint32_t pcie_generation = 4;
  std::uint32_t pcie_width = 16;
  std::uint64_t pcie_bytes_per_s = 1'000'000'000;
  std::uint32_t recovery_action = 0;
  std::uint32_t nvlinks = 0;
  bool ecc = false;

  bool mig_enabled = false;
  std::uint32_t mig_slices = 0;
  bool process_records_535 = false;  ///< 32 bytes where the third version has 24
  std::vector<Process> processes = {};
  std::vector<std::uint32_t> no_fields = {};         ///< field ids this card does not know
  std::optional<std::uint32_t> no_fields_from = {};  ///< nor any from this id on
  std::vector<Happening> happenings = {};            ///< in the order of their times
};

/// A misfortune: which calls it meets, and what it does to them.
struct Fault {
  std::string symbol = "*";                 ///< a name; a `*` at the end stands for any rest
  std::optional<std::uint32_t> card = {};   ///< absent: every card
  std::optional<std::uint32_t> field = {};  ///< this id of nvmlDeviceGetFieldValues alone
  std::optional<double> from_s = {};        ///< since the state began
  std::optional<double> until_s = {};
  /// Calls are counted from 1 by card and symbol, over all processes.
  std::optional<std::uint64_t> from_call = {};
  std::optional<std::uint64_t> until_call = {};
  bool armed = true;  ///< false: waits for FakeNvml::arm

  std::optional<std::uint32_t> code = {};            ///< nvmlReturn_t instead of an answer
  double block_s = 0;                                ///< before the answer
  bool ignore = false;                               ///< a set answers success and does nothing
  std::optional<double> revert_after_s = {};         ///< a set is undone by the driver
  std::optional<std::uint32_t> set_instead_mw = {};  ///< a set puts this in place
  int raise_before = 0;  ///< signal to the calling process before the call has any effect
  int raise_after = 0;   ///< ... after it had
};

struct Script {
  /// The file of the shared state; absent: the script's name with `.state` added.
  std::string state = {};
  std::vector<Card> cards = {};
  std::vector<Fault> faults = {};  ///< at most 64
  /// Who may set anything. Whoever has HALFWATT_FAKE_NVML_PRIVILEGED in the environment always
  /// may: so a test can play sudo without being root.
  bool anyone_may_set = true;
  bool root_may_set = true;  ///< false: root in a container without CAP_SYS_ADMIN
  /// Without persistence the driver forgets its settings when the last process has left, or
  /// died; that is found out when the next one comes.
  bool unloads_without_clients = false;
  bool virtual_clock = false;  ///< time stands still until FakeNvml::advance
  double call_us = 0;          ///< what every call takes, of real time on either clock
  bool call_is_busy = true;    ///< and whether it burns or sleeps that time
  std::map<std::string, double> symbol_us;  ///< the same for single symbols
  std::string driver_version = "580.65.06";
  std::string nvml_version = "13.580.65.06";
  int cuda_version = 13000;
};

/// Reads a script and fills in what depends on a card's index. Throws std::runtime_error with
/// one line for a file that cannot be read, that is no JSON, or that has an unknown key.
Script read_script(const std::string& path);
/// Fills in what depends on a card's index or on the script's own path.
Script completed(Script script, const std::string& path);
/// The script as JSON.
std::string to_text(const Script& script);

}  // namespace halfwatt::fake_nvml

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "workloads/op_rates.h"

namespace halfwatt {

/// Rates that were measured on this machine, by the name of the precision, kept in a file. A
/// file that cannot be read or written is as good as none: rates are measured again.
class ProbeCache {
 public:
  /// `machine`: all that the rates depend on, as text. `file`: nullopt keeps nothing.
  ProbeCache(std::string machine, std::optional<std::filesystem::path> file);

  /// The rates in that precision; nullopt if they were not measured yet.
  std::optional<OpRates> find(const std::string& precision) const;
  /// Takes rates, and writes the file if it can.
  void put(const std::string& precision, OpRates rates);

 private:
  void read();
  void write() const;

  std::string machine_;
  std::optional<std::filesystem::path> file_;
  std::map<std::string, OpRates> rates_;
};

/// The usual file for `machine`: $XDG_CACHE_HOME/halfwatt/probes-MACHINE.json, or below
/// ~/.cache; nullopt where the user has neither.
std::optional<std::filesystem::path> probe_file(const std::string& machine);

}  // namespace halfwatt

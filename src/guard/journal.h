#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace halfwatt {

/// Tells one running of the machine and of its driver from the next; either forgets limits.
struct LoadId {
  std::string boot;                   ///< of the kernel
  std::optional<std::string> driver;  ///< of the loaded driver; absent where none is loaded
  bool operator==(const LoadId&) const = default;
};

/// Reads it from `root`/proc and `root`/sys; `root` is "/" but in tests.
LoadId current_load(const std::filesystem::path& root = "/");

/// What must be known about a card to put its limit back after everything else died.
struct JournalEntry {
  std::string card;  ///< its UUID
  LoadId load;
  Watts found;                            ///< the requested limit before the first write
  std::optional<bool> found_persistence;  ///< absent where the card does not tell
  std::optional<Watts> intent;            ///< about to be written, or written
  std::optional<Watts>
      previous_intent;              ///< in force before it: the write may not have happened
  std::vector<int> stopped_groups;  ///< process groups that must be continued
  /// Whether `intent` is what the card said after the write; until then it may have rounded it.
  bool read_back = true;
  bool operator==(const JournalEntry&) const = default;
};

/// The journal: one small JSON file for each card that halfwatt changed and has not put back.
class Journal {
 public:
  explicit Journal(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Replaces the card's entry; it is on the disk, name and bytes, when this returns. Errors:
  /// disk full, folder read-only, with --state-dir as the way out; the old entry stands then.
  Result<void> write(const JournalEntry& entry) const;
  /// The card's entry; nullopt without one. Errors: it is there and cannot be understood.
  Result<std::optional<JournalEntry>> read(const std::string& card) const;
  /// Takes the card's entry away; harmless without one.
  Result<void> close(const std::string& card) const;
  /// The cards that have an entry, in order. A folder that is not there has none.
  std::vector<std::string> cards() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace halfwatt

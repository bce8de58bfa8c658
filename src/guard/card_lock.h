#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "guard/descriptor.h"

namespace halfwatt {

/// Who holds a card.
struct Holder {
  pid_t pid = 0;        ///< of the halfwatt that asked for the card
  std::string command;  ///< as it was typed
  std::string since;    ///< local time, "2026-11-30 12:00:00"
  bool operator==(const Holder&) const = default;
};

/// The process `pid` as a holder from now on.
Holder holder(pid_t pid);

/// A card is changed by one halfwatt at a time: an flock on a file named after its UUID, which
/// the kernel lets go when the holder dies, however it dies.
class CardLock {
 public:
  /// Waits up to `patience` for a holder that is just leaving. Errors: somebody else holds the
  /// card, with who and since when; or the file cannot be made.
  static Result<CardLock> take(const std::filesystem::path& folder,
                               const std::string& card,
                               const Holder& me,
                               Seconds patience);

 private:
  explicit CardLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// Who holds `card` now; nullopt where nobody does.
std::optional<Holder> find_holder(const std::filesystem::path& folder, const std::string& card);
/// The cards that have a lock file in `folder`, held or not, in order.
std::vector<std::string> locked_cards(const std::filesystem::path& folder);

}  // namespace halfwatt

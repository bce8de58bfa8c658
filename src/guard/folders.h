#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guard/descriptor.h"

namespace halfwatt {

/// Where locks of real cards lie, and those of others within a state folder.
inline constexpr std::string_view kSharedLocks = "/run/lock/halfwatt";
inline constexpr std::string_view kLocksInState = "locks";

/// Where the journal and the locks lie.
struct GuardFolders {
  std::filesystem::path state;  ///< entries of the journal
  std::filesystem::path locks;
};

/// `/var/lib/halfwatt` for root, `$XDG_STATE_HOME/halfwatt` or `~/.local/state/halfwatt` for
/// others, or `state_dir` where given. Locks of real cards lie in `/run/lock/halfwatt`; those
/// of cards that only a test or a simulation knows (`shared` false), and those of a machine
/// without that folder, lie beside the journal.
GuardFolders guard_folders(const std::optional<std::string>& state_dir, bool shared);

/// Where entries of the journal may lie: in `state_dir`, or in root's folder and the user's
/// own.
std::vector<std::filesystem::path> state_folders(const std::optional<std::string>& state_dir);

/// A card's name as a file name: what is not a letter, digit, '-', '_' or '.' becomes %XX.
std::string file_name(std::string_view card);
/// The name that file_name() was given.
std::string card_name(std::string_view file);

/// Makes the folder where it is missing (0755, its parents too) and opens it. Errors: it cannot
/// be made, or it is a link.
Result<Descriptor> open_folder(const std::filesystem::path& path);

/// The cards that have a file with this ending in `folder`, sorted; none where it is not there.
std::vector<std::string> cards_in(const std::filesystem::path& folder, std::string_view ending);

}  // namespace halfwatt

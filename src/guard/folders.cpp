#include "guard/folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace halfwatt {
namespace {

constexpr std::string_view kRootsState = "/var/lib/halfwatt";

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::filesystem::path usual_state() {
  if (const auto asked = environment("HALFWATT_STATE_DIR")) {
    return *asked;
  }
  if (::geteuid() == 0) {
    return kRootsState;
  }
  if (const auto state = environment("XDG_STATE_HOME")) {
    return std::filesystem::path(*state) / "halfwatt";
  }
  if (const auto home = environment("HOME")) {
    return std::filesystem::path(*home) / ".local/state/halfwatt";
  }
  return std::filesystem::temp_directory_path() / fmt::format("halfwatt-{}", ::geteuid());
}

// A folder that somebody else owns is no place for a lock: he could take the file away. Only
// root makes it, or the first user who comes by would own it.
bool can_hold_locks(const std::filesystem::path& path) {
  if (std::error_code none; ::geteuid() != 0 && !std::filesystem::exists(path, none)) {
    return false;
  }
  const Result<Descriptor> folder = open_folder(path);
  struct stat status {};
  return folder && ::fstat(folder->number(), &status) == 0 && status.st_uid == ::geteuid() &&
         ::faccessat(folder->number(), ".", W_OK, AT_EACCESS) == 0;
}

}  // namespace

GuardFolders guard_folders(const std::optional<std::string>& state_dir, bool shared) {
  GuardFolders folders;
  folders.state = state_dir ? std::filesystem::path(*state_dir) : usual_state();
  folders.locks = shared && can_hold_locks(kSharedLocks) ? std::filesystem::path(kSharedLocks)
                                                         : folders.state / kLocksInState;
  return folders;
}

std::vector<std::filesystem::path> state_folders(const std::optional<std::string>& state_dir) {
  if (state_dir) {
    return {*state_dir};
  }
  std::vector<std::filesystem::path> folders = {kRootsState};
  if (usual_state() != kRootsState) {
    folders.push_back(usual_state());
  }
  return folders;
}

std::string file_name(std::string_view card) {
  std::string name;
  for (const char c : card) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                       c == '_' || (c == '.' && !name.empty());
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

std::string card_name(std::string_view file) {
  std::string name;
  for (std::size_t at = 0; at < file.size(); ++at) {
    unsigned value = 0;
    if (file[at] == '%' && at + 2 < file.size() &&
        std::from_chars(&file[at + 1], &file[at + 1] + 2, value, 16).ec == std::errc()) {
      name += static_cast<char>(value);
      at += 2;
    } else {
      name += file[at];
    }
  }
  return name;
}

Result<Descriptor> open_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // the open below says why
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  std::filesystem::path made;
  int why = 0;
  for (const auto& part : absolute) {
    made /= part;
    why = ::mkdir(made.c_str(), 0755) == 0 || errno == EEXIST || why != 0 ? why : errno;
  }
  Descriptor folder(::open(absolute.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.is_open()) {
    return Error{ErrorKind::device,
                 fmt::format("folder {}: {}; --state-dir names another one", path.string(),
                             std::strerror(errno == ENOENT && why != 0 ? why : errno))};
  }
  return folder;
}

std::vector<std::string> cards_in(const std::filesystem::path& folder,
                                  std::string_view ending) {
  std::vector<std::string> cards;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(ending)) {
      cards.push_back(card_name(std::string_view(name).substr(0, name.size() - ending.size())));
    }
  }
  std::sort(cards.begin(), cards.end());
  return cards;
}

}  // namespace halfwatt

#include "guard/card_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "guard/folders.h"

namespace halfwatt {
namespace {

constexpr std::string_view kEnding = ".lock";
// How often a lock that is held is tried again.
constexpr Seconds kRetry{0.02};

std::string read_all(int file) {
  std::string text(4096, '\0');
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

std::string to_text(const Holder& holder) {
  return fmt::format("{}\n{}\n{}\n", holder.pid, holder.since, holder.command);
}

std::optional<Holder> from_text(const std::string& text) {
  Holder holder;
  const std::size_t first = text.find('\n');
  const std::size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos ||
      std::from_chars(text.data(), text.data() + first, holder.pid).ec != std::errc()) {
    return std::nullopt;
  }
  holder.since = text.substr(first + 1, second - first - 1);
  holder.command = text.substr(second + 1);
  while (!holder.command.empty() && holder.command.back() == '\n') {
    holder.command.pop_back();
  }
  return holder;
}

Error held_error(const std::string& card, const std::optional<Holder>& by) {
  const std::string who =
      by ? fmt::format("process {} since {} ({})", by->pid, by->since, by->command)
         : "another halfwatt";
  return {ErrorKind::device,
          fmt::format("{} is held by {}; wait for it or end it; halfwatt status lists all",
                      card, who)};
}

}  // namespace

Holder holder(pid_t pid) {
  Holder holder;
  holder.pid = pid;
  std::ifstream in(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  holder.command = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  while (!holder.command.empty() && holder.command.back() == '\0') {
    holder.command.pop_back();
  }
  for (char& c : holder.command) {
    c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  holder.command = holder.command.substr(0, 200);
  holder.since = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
  return holder;
}

Result<CardLock> CardLock::take(const std::filesystem::path& folder,
                                const std::string& card,
                                const Holder& me,
                                Seconds patience) {
  const Result<Descriptor> opened = open_folder(folder);
  if (!opened) {
    return opened.error();
  }
  const std::string name = file_name(card) + std::string(kEnding);
  Descriptor file(::openat(opened->number(), name.c_str(),
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.is_open()) {
    return Error{ErrorKind::device,
                 fmt::format("lock {}: {}; --state-dir DIR names another place",
                             (folder / name).string(), std::strerror(errno))};
  }
  SteadyClock clock;
  const Seconds end = clock.now() + patience;
  while (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && clock.now() >= end) {
      return held_error(card, from_text(read_all(file.number())));
    }
    clock.sleep_until(clock.now() + kRetry);
  }
  // Who holds it is a courtesy: on a full disk the lock still holds.
  const std::string text = to_text(me);
  if (::ftruncate(file.number(), 0) == 0) {
    (void)!::pwrite(file.number(), text.data(), text.size(), 0);
  }
  return CardLock(std::move(file));
}

std::optional<Holder> find_holder(const std::filesystem::path& folder,
                                  const std::string& card) {
  const std::string name = file_name(card) + std::string(kEnding);
  const Descriptor file(::open((folder / name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  // The lock is asked for and let go at once; take() is patient enough not to be refused by it.
  if (!file.is_open() || ::flock(file.number(), LOCK_SH | LOCK_NB) == 0) {
    return std::nullopt;
  }
  return from_text(read_all(file.number()));
}

std::vector<std::string> locked_cards(const std::filesystem::path& folder) {
  return cards_in(folder, kEnding);
}

}  // namespace halfwatt

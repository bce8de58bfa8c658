#include "engine/formats/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

// No system call of Linux moves more than this at once (man 2 write).
constexpr std::size_t kPiece = 0x7ffff000;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

Error cannot_write(const fs::path& path, std::string_view why) {
  return bad_input(fmt::format("cannot write {}: {}", shown(path), why));
}

}  // namespace

FileDescriptor::~FileDescriptor() { close(); }

bool FileDescriptor::close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

Result<InputFile> InputFile::open(const fs::path& path) {
  InputFile file;
  file.name_ = shown(path);
  // Without O_NONBLOCK a pipe that nobody writes to would be waited for.
  file.descriptor_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.descriptor_.number() < 0 || ::fstat(file.descriptor_.number(), &status) != 0) {
    return bad_input(fmt::format("cannot read {}: {}", file.name_, reason(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return bad_input(fmt::format("{}: is {}; needed a file", file.name_,
                                 S_ISDIR(status.st_mode) ? "a folder" : "no regular file"));
  }
  file.bytes_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<void> InputFile::check_bytes(std::uint64_t most) const {
  if (bytes_ > most) {
    return bad_input(fmt::format("{}: has {} bytes; needed {} or fewer", name_, bytes_, most));
  }
  return {};
}

Result<void> InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_.number(), into.data(),
                                std::min(into.size(), kPiece), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return bad_input(fmt::format("cannot read {}: {}", name_, reason(errno)));
    }
    if (got == 0) {
      return bad_input(
          fmt::format("{}: ends at byte {}, {} bytes early; it had {} when it was opened",
                      name_, offset, into.size(), bytes_));
    }
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<NewFile> NewFile::begin(const fs::path& path) {
  // Two threads may write the same file; the one that ends last is the one that stays.
  static std::atomic<unsigned> count{0};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty()) {
    return bad_input("cannot write a file without a name: the path is empty");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return cannot_write(path, fs::is_directory(status) ? "it is a folder; needed a file"
                                                       : "it is no regular file");
  }
  NewFile file;
  file.target_ = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) {
    return cannot_write(path, error.message());
  }
  const fs::path folder = file.target_.parent_path();
  if (!fs::is_directory(folder, error)) {
    return cannot_write(
        path, fmt::format("the folder {} does not exist; make it first", shown(folder)));
  }
  // Short, so that it is no longer than a file's name may be where the target's own is not.
  const fs::path temporary =
      folder / fmt::format(".halfwatt-{}-{}.new", ::getpid(), count.fetch_add(1));
  ::unlink(temporary.c_str());  // of a process that had this id and was killed
  file.descriptor_ =
      FileDescriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.descriptor_.number() < 0) {
    return cannot_write(path, reason(errno));
  }
  file.temporary_ = temporary;
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

Result<void> NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor_.number(), bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return cannot_write(target_, reason(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> NewFile::put_in_place() {
  if (::fsync(descriptor_.number()) != 0 || !descriptor_.close() ||
      ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    return cannot_write(target_, reason(errno));
  }
  temporary_.clear();
  const FileDescriptor folder(
      ::open(target_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() >= 0) {
    ::fsync(folder.number());  // some file systems flush no folders; the file itself is safe
  }
  return {};
}

}  // namespace halfwatt

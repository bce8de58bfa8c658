#include "report/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// An open file that is closed when it leaves its scope.
class File {
 public:
  File(const fs::path& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() { close_now(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const { return descriptor_ >= 0; }

  /// All of `text`; sets errno where it returns false.
  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written < 0) {
        return false;
      }
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool flush() const { return fsync(descriptor_) == 0; }
  bool close_now() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor < 0 || close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

Error cannot_write(const fs::path& path, std::string_view why) {
  return bad_input(fmt::format("cannot write {}: {}", path.string(), why));
}

Error cannot_write(const fs::path& path, int error_number) {
  return cannot_write(path, std::generic_category().message(error_number));
}

Result<void> write_into(const fs::path& path, std::string_view text) {
  File file(path, O_WRONLY);
  if (!file || !file.write_all(text) || !file.close_now()) {
    return cannot_write(path, errno);
  }
  return {};
}

/// Removes the temporary file on every way out; after the rename there is none.
class Temporary {
 public:
  explicit Temporary(const fs::path& beside)
      : path_(beside.parent_path() /
              fmt::format(".{}.{}.new", beside.filename().string(), getpid())) {
    unlink(path_.c_str());  // of a process that had this id and was killed
  }
  ~Temporary() { unlink(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<void> replace(const fs::path& path, std::string_view text) {
  const Temporary temporary(path);
  File file(temporary.path(), O_WRONLY | O_CREAT | O_EXCL);
  if (!file || !file.write_all(text) || !file.flush() || !file.close_now() ||
      rename(temporary.path().c_str(), path.c_str()) != 0) {
    return cannot_write(path, errno);
  }
  const File folder(path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (folder) {
    folder.flush();  // some file systems flush no folders; the file itself is safe
  }
  return {};
}

}  // namespace

Result<void> write_whole_file(const fs::path& path, std::string_view text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty()) {
    return cannot_write(path, "the path is empty");
  }
  if (fs::is_directory(status)) {
    return cannot_write(path, "it is a folder; give the path of a file");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return write_into(path, text);
  }
  // A name alone is in the working folder, which weakly_canonical says of existing files only.
  const fs::path target = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) {
    return cannot_write(path, error.message());
  }
  if (!fs::is_directory(target.parent_path(), error)) {
    return cannot_write(path, fmt::format("the folder {} does not exist; make it first",
                                          target.parent_path().string()));
  }
  return replace(target, text);
}

}  // namespace halfwatt

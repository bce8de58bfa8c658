#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace halfwatt {

/// Owns an open file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  int number() const { return number_; }
  /// Closes now, to hear of errors; false if there was one (errno).
  bool close();

 private:
  int number_ = -1;
};

/// A regular file that is read at offsets, or as a whole where it is small enough.
class InputFile {
 public:
  /// Errors (bad_input): there is no such file, it may not be read, it is a folder or a device.
  static Result<InputFile> open(const std::filesystem::path& path);

  /// Its name in messages.
  const std::string& name() const { return name_; }
  /// Its length in bytes when it was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Fills `into` from `offset` on. Errors (bad_input): the file cannot be read or has become
  /// shorter.
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
  /// All of it, as `T`s of one byte. Errors (bad_input): more than `most` bytes, which are not
  /// read; as read().
  template <class T = std::byte>
  Result<std::vector<T>> whole(std::uint64_t most) const {
    static_assert(sizeof(T) == 1);
    if (const auto small = check_bytes(most); !small) {
      return small.error();
    }
    std::vector<T> all(bytes_);
    if (const auto filled = read(0, std::as_writable_bytes(std::span(all))); !filled) {
      return filled.error();
    }
    return all;
  }

 private:
  Result<void> check_bytes(std::uint64_t most) const;

  FileDescriptor descriptor_;
  std::string name_;
  std::uint64_t bytes_ = 0;
};

/// A file in the making: written under another name in the same folder, so that a reader, even
/// after a power cut, finds the old file or the whole new one. Gone if it is never put in
/// place.
class NewFile {
 public:
  /// Follows symbolic links. Errors (bad_input): the folder is missing or read-only, the path
  /// is a folder or a device.
  static Result<NewFile> begin(const std::filesystem::path& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  /// Appends. Errors (bad_input): the disk is full.
  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes it to the disk and gives it its name; nothing may follow.
  Result<void> put_in_place();

 private:
  NewFile() = default;

  FileDescriptor descriptor_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty once it has its name
};

}  // namespace halfwatt

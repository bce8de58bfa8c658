#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "device/device.h"

namespace halfwatt {

/// The power limit of a simulated card in a small file that any number of processes share.
///
/// It outlives every one of them as a real card's limit does, which is what makes it fit to
/// test putting limits back. Reading and setting are single atomic accesses of the mapped file.
class LimitFile {
 public:
  /// Makes the file, or makes it anew, with `initial` in force. Errors: `range` is empty,
  /// `initial` lies outside, or the file cannot be written.
  static Result<LimitFile> create(const std::filesystem::path& path,
                                  const LimitRange& range,
                                  Watts initial);
  /// Opens a file that create() made. Errors: it is not there, not ours, or not writable.
  static Result<LimitFile> open(const std::filesystem::path& path);

  LimitFile(LimitFile&& other) noexcept;
  LimitFile& operator=(LimitFile&& other) noexcept;
  ~LimitFile();

  /// What is in force now, to the milliwatt.
  Watts limit() const;
  /// The range the card accepts, as it stands in the file.
  LimitRange range() const;
  /// Errors: `limit` lies outside the range.
  Result<void> set(Watts limit);
  /// How often set() succeeded since create(), in all processes together.
  unsigned writes() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Page;
  LimitFile(std::filesystem::path path, Page* page) : path_(std::move(path)), page_(page) {}
  static Result<LimitFile> map(const std::filesystem::path& path, int file);

  std::filesystem::path path_;
  Page* page_ = nullptr;
};

}  // namespace halfwatt

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace halfwatt {

/// A folder that is gone with its owner.
class ScratchFolder {
 public:
  static Result<std::unique_ptr<ScratchFolder>> make();
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace halfwatt

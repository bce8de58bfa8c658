#pragma once

#include <string_view>

#include "device/limit_file.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// The limit of a simulated card that lies in a file.
class FileLimit final : public LimitControl {
 public:
  /// The name of such a card for a guardian is this and the file's absolute path.
  static constexpr std::string_view kPrefix = "limit-file:";

  explicit FileLimit(LimitFile file) : file_(std::move(file)) {}
  Result<Watts> read() override { return file_.limit(); }
  Result<void> write(Watts limit) override { return file_.set(limit); }
  Result<LimitState> look() override {
    return LimitState{file_.limit(), file_.limit(), file_.range(), true, false};
  }

 private:
  LimitFile file_;
};

}  // namespace halfwatt

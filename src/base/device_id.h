#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace halfwatt {

/// How a user names a device; one flag (`--device`) in every command.
struct DeviceId {
  enum class Kind { gpu_index, gpu_uuid, cpu, simulated };
  Kind kind = Kind::cpu;
  std::string name;  ///< "0" for `gpu:0`, the whole id for a UUID, "rtx3090" for `sim:rtx3090`

  /// Reads `gpu:0`, `GPU-<uuid>`, `cpu`, `sim:rtx3090` or `sim:FILE.csv`.
  static Result<DeviceId> parse(std::string_view text);
  /// The text that parse() reads back.
  std::string text() const;
};

}  // namespace halfwatt

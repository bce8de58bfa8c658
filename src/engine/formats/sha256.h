#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"

namespace halfwatt {

/// SHA-256 as FIPS 180-4 has it, of bytes that come piece by piece.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// The digest of all that was added, as 64 hexadecimal digits; nothing may follow.
  std::string digest();

 private:
  void take_block(const std::byte* block);

  static constexpr std::size_t kBlock = 64;
  std::array<std::uint32_t, 8> state_ = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                         0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
  std::array<std::byte, kBlock> open_ = {};  ///< what is not a block yet
  std::uint64_t bytes_ = 0;
};

/// The digest of a file, which is what `sha256sum` says of it. Errors: as InputFile::open() and
/// read().
Result<std::string> sha256_of(const std::filesystem::path& path);

}  // namespace halfwatt

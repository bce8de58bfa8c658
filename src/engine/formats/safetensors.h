#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/formats/file.h"
#include "engine/formats/safetensors_json.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// An open safetensors file (https://github.com/huggingface/safetensors): its header in memory,
/// its tensors on the disk until they are asked for.
class SafetensorsFile {
 public:
  /// Errors (bad_input): one line that names the file, what was found and what was needed.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  /// Bytes in front of the tensors: the length of the header, and the header.
  std::uint64_t header_bytes() const { return data_; }
  std::uint64_t file_bytes() const { return file_.bytes(); }

  /// The tensor of that name; nullptr if there is none.
  const StoredTensor* find(std::string_view name) const;
  /// A copy of `stored`, one of this file's tensors, wherever it lies. Errors (bad_input): the
  /// file cannot be read or has become shorter, memory is too small.
  Result<Tensor> read(const StoredTensor& stored) const;

 private:
  SafetensorsFile(InputFile file, SafetensorsHeader header, std::uint64_t data)
      : file_(std::move(file)), header_(std::move(header)), data_(data) {}

  InputFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_ = 0;  ///< offset in the file of the tensors' first byte
};

/// A tensor to be written; both are somebody else's.
struct NamedTensor {
  std::string_view name;
  TensorView tensor;
};

/// Writes `tensors` to `path`: all of the new file or, on any error and after a power cut, the
/// old one. They are ordered as the reference implementation does, by dtype, the widest first,
/// then by name, so that each lies aligned to its dtype. tf32 is stored as F32.
///
/// Errors (bad_input): the disk is full, the folder missing or read-only, a name is there twice
/// or not in UTF-8.
Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const NamedTensor> tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace halfwatt

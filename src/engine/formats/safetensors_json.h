#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// A tensor of a file: what it is, and where its bytes lie.
struct StoredTensor {
  std::string name;
  TensorType type;
  std::uint64_t offset = 0;  ///< bytes from the end of the header to its first one

  /// Offset of the byte behind its last one.
  std::uint64_t end() const { return offset + type.bytes(); }
};

/// What stands in front of the data of a safetensors file.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
  std::string ignored;  ///< one line on fields that the format does not know; empty for none
};

/// What the format calls `dtype`: "F32", "F8_E4M3"; tf32 is stored as F32.
std::string_view safetensors_name(DType dtype);
/// Where `dtype` stands among the others when a file is written: the highest comes first.
int safetensors_rank(DType dtype);

/// The JSON of a header, its tensors in the order of the text, each of them right in itself: a
/// known dtype, at most six extents, offsets as far apart as dtype and shape need. Whether they
/// fit together is for parse_safetensors_header. Errors (bad_input): one line without the
/// file's name.
Result<SafetensorsHeader> read_safetensors_json(std::string_view json);

}  // namespace halfwatt

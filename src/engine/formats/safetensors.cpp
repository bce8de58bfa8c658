#include "engine/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>
#include <vector>

#include "engine/formats/quoted.h"
#include "engine/formats/safetensors_header.h"

namespace halfwatt {

// The format is little-endian, and elements are copied as they are.
static_assert(std::endian::native == std::endian::little);

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto bytes_at = [&file](std::uint64_t offset,
                                std::uint64_t bytes) -> Result<std::string> {
    std::string text(bytes, '\0');
    const Result<void> read = file->read(offset, std::as_writable_bytes(std::span(text)));
    return read ? Result<std::string>(std::move(text)) : read.error();
  };
  const Result<std::string> start =
      bytes_at(0, std::min<std::uint64_t>(file->bytes(), kSafetensorsPrefix));
  if (!start) {
    return start.error();
  }
  const Result<std::uint64_t> length =
      safetensors_header_bytes(*start, file->bytes(), file->name());
  if (!length) {
    return length.error();
  }
  const std::uint64_t data = kSafetensorsPrefix + *length;
  const Result<std::string> json = bytes_at(kSafetensorsPrefix, *length);
  if (!json) {
    return json.error();
  }
  Result<SafetensorsHeader> header =
      parse_safetensors_header(*json, file->bytes() - data, file->name());
  if (!header) {
    return header.error();
  }
  return SafetensorsFile(std::move(*file), std::move(*header), data);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(header_.tensors.begin(), header_.tensors.end(),
                   [name](const StoredTensor& each) { return each.name == name; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

Result<Tensor> SafetensorsFile::read(const StoredTensor& stored) const {
  Tensor tensor;
  try {
    tensor = Tensor(stored.type);
  } catch (const std::bad_alloc&) {
    return bad_input(fmt::format("{}: tensor {}: {} bytes do not fit into memory", file_.name(),
                                 quoted_name(stored.name), stored.type.bytes()));
  }
  const Result<void> done = file_.read(data_ + stored.offset, tensor.view().bytes());
  return done ? Result<Tensor>(std::move(tensor)) : done.error();
}

Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const NamedTensor> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> ordered(tensors.begin(), tensors.end());
  std::sort(ordered.begin(), ordered.end(),
            [](const NamedTensor& one, const NamedTensor& other) {
              const int first = safetensors_rank(one.tensor.type.dtype);
              const int second = safetensors_rank(other.tensor.type.dtype);
              return first != second ? first > second : one.name < other.name;
            });
  SafetensorsHeader header;
  header.metadata = metadata;
  std::uint64_t offset = 0;
  for (const NamedTensor& each : ordered) {
    header.tensors.push_back({std::string(each.name), each.tensor.type, offset});
    offset += each.tensor.type.bytes();
  }
  const Result<std::string> start = safetensors_start(header);
  if (!start) {
    return bad_input(fmt::format("cannot write {}: {}", shown(path), start.error().message));
  }
  Result<NewFile> file = NewFile::begin(path);
  if (!file) {
    return file.error();
  }
  Result<void> written = file->write(std::as_bytes(std::span(*start)));
  for (std::size_t i = 0; i < ordered.size() && written; ++i) {
    written = file->write(ordered[i].tensor.bytes());
  }
  return written ? file->put_in_place() : written;
}

}  // namespace halfwatt

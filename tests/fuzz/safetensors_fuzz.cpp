// Reads any bytes as a safetensors file: the number in front, the header, and of the data only
// how much there is. What is read must be written again as a header that reads the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/formats/safetensors_header.h"

namespace halfwatt {
namespace {

const std::string kFile = "model.safetensors";

void check(const Error& error) {
  HALFWATT_CHECK(error.kind == ErrorKind::bad_input, "a bad file is bad input");
  HALFWATT_CHECK(error.message.starts_with(kFile + ": "), "an error names the file");
  HALFWATT_CHECK(error.message.size() < 1000, "an error is short");
  HALFWATT_CHECK(
      std::ranges::all_of(error.message, [](char c) { return c >= 0x20 && c < 0x7f; }),
      "an error is one line of printable ASCII");
}

/// What everything that reads tensors relies on.
void check(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const StoredTensor& each : header.tensors) {
    HALFWATT_CHECK(each.offset == at, "tensors lie one behind the other");
    HALFWATT_CHECK(each.type.shape.elements() >= 0, "elements can be counted");
    HALFWATT_CHECK(each.type.bytes() <= data_bytes, "no tensor is longer than the file");
    at = each.end();
  }
  HALFWATT_CHECK(at == data_bytes, "tensors cover the data");
  HALFWATT_CHECK(header.ignored.size() < 1000, "a remark is short");
}

void read_again(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  const auto start = safetensors_start(header);
  HALFWATT_CHECK(start.has_value(), "what is read can be written");
  const std::uint64_t bytes = start->size() + data_bytes;
  const auto length =
      safetensors_header_bytes(start->substr(0, kSafetensorsPrefix), bytes, kFile);
  HALFWATT_CHECK(length && *length + kSafetensorsPrefix == start->size(),
                 "the length is right");
  const auto again =
      parse_safetensors_header(start->substr(kSafetensorsPrefix), data_bytes, kFile);
  HALFWATT_CHECK(again.has_value(), "what is written can be read");
  HALFWATT_CHECK(again->metadata == header.metadata, "metadata stays");
  HALFWATT_CHECK(std::ranges::equal(again->tensors, header.tensors,
                                    [](const StoredTensor& one, const StoredTensor& other) {
                                      return one.type.bytes() == other.type.bytes();
                                    }),
                 "tensors stay");
}

void read(std::string_view bytes) {
  const auto length =
      safetensors_header_bytes(bytes.substr(0, kSafetensorsPrefix), bytes.size(), kFile);
  if (!length) {
    return check(length.error());
  }
  const std::uint64_t data_bytes = bytes.size() - kSafetensorsPrefix - *length;
  const auto header =
      parse_safetensors_header(bytes.substr(kSafetensorsPrefix, *length), data_bytes, kFile);
  if (!header) {
    return check(header.error());
  }
  check(*header, data_bytes);
  read_again(*header, data_bytes);
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  halfwatt::read({reinterpret_cast<const char*>(data), size});
  return 0;
}

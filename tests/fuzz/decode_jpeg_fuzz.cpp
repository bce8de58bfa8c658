// Decodes any bytes as a JPEG: what comes out is a whole picture or one line.

#include "decoded.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string name = "picture";
  const halfwatt::DecodePolicy policy = halfwatt::fuzzed_policy();
  const auto bytes = std::as_bytes(std::span(data, size));
  halfwatt::check_decoded(halfwatt::decode_jpeg(bytes, name, policy), name, policy);
  return 0;
}

// Decodes any bytes as a JPEG: what comes out is a whole picture or one line; and a part of it,
// resized, is what a resize makes of the picture, or refused where that is.

#include "decoded.h"

namespace {

/// A part that bytes at the end choose.
halfwatt::ResizedPart part_of(std::span<const std::byte> bytes,
                              std::int64_t width,
                              std::int64_t height) {
  const auto chosen = [&](std::size_t from_end, std::int64_t count) {
    const auto byte = std::to_integer<std::int64_t>(bytes[bytes.size() - from_end]);
    return byte * count / 256;
  };
  halfwatt::Resizing how;
  how.from.left = chosen(3, width);
  how.from.top = chosen(4, height);
  how.from.width = 1 + chosen(5, width - how.from.left);
  how.from.height = 1 + chosen(6, height - how.from.top);
  how.width = 1 + chosen(7, 64);
  how.height = 1 + chosen(8, 64);
  return halfwatt::whole(how);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string name = "picture";
  const halfwatt::DecodePolicy policy = halfwatt::fuzzed_policy();
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto all = halfwatt::decode_jpeg(bytes, name, policy);
  halfwatt::check_decoded(all, name, policy);
  halfwatt::ResizedPart wanted;
  const auto part =
      halfwatt::decode_jpeg(bytes, name, policy, [&](std::int64_t width, std::int64_t height) {
        return wanted = part_of(bytes, width, height);
      });
  halfwatt::check_decoded(part, name, policy);
  HALFWATT_CHECK(!part == !all, "a part is refused where the picture is");
  if (part && part->is_part) {
    HALFWATT_CHECK(part->image.pixels == halfwatt::resize_part(all->image, wanted).pixels,
                   "a part has the picture's pixels");
  }
  return 0;
}

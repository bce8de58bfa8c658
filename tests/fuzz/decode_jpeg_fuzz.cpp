// Decodes any bytes as a JPEG: what comes out is a whole picture or one line; and a part of it
// is the same pixels, or refused where the picture is.

#include "decoded.h"

namespace {

/// A part that bytes at the end choose.
halfwatt::Box part_of(std::span<const std::byte> bytes,
                      std::int64_t width,
                      std::int64_t height) {
  const auto chosen = [&](std::size_t from_end, std::int64_t count) {
    const auto byte = std::to_integer<std::int64_t>(bytes[bytes.size() - from_end]);
    return byte * count / 256;
  };
  halfwatt::Box box;
  box.left = chosen(3, width);
  box.top = chosen(4, height);
  box.width = 1 + chosen(5, width - box.left);
  box.height = 1 + chosen(6, height - box.top);
  return box;
}

void check_same(const halfwatt::Image& part,
                const halfwatt::Image& all,
                const halfwatt::Box& box) {
  for (std::int64_t row = box.top; row < box.top + box.height; ++row) {
    const auto at = static_cast<std::ptrdiff_t>(3 * (row * all.width + box.left));
    HALFWATT_CHECK(std::equal(all.pixels.begin() + at, all.pixels.begin() + at + 3 * box.width,
                              part.pixels.begin() + at),
                   "a part has the picture's pixels");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string name = "picture";
  const halfwatt::DecodePolicy policy = halfwatt::fuzzed_policy();
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto all = halfwatt::decode_jpeg(bytes, name, policy);
  halfwatt::check_decoded(all, name, policy);
  halfwatt::Box box;
  const auto part =
      halfwatt::decode_jpeg(bytes, name, policy, [&](std::int64_t width, std::int64_t height) {
        return box = part_of(bytes, width, height);
      });
  halfwatt::check_decoded(part, name, policy);
  HALFWATT_CHECK(!part == !all, "a part is refused where the picture is");
  if (part && box.width > 0) {
    check_same(part->image, all->image, box);
  }
  return 0;
}

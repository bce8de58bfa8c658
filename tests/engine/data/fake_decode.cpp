// decode_image for this room's tests until the real one is there, which takes its place.

#include "engine/data/decode.h"

namespace halfwatt {

__attribute__((weak)) Result<Image> decode_image(std::span<const std::byte> bytes,
                                                 const std::string& name,
                                                 const DecodePolicy&) {
  if (bytes.empty() || bytes[0] != std::byte{0x89}) {
    return bad_input(name + ": no PNG");
  }
  return Image{1, 1, {255, 255, 255}};
}

}  // namespace halfwatt

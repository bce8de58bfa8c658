// decode_image for this room's tests as long as there is no decoder here: to be deleted, with
// its line in CMakeLists.txt, when the real one comes. The tests hold for that one as they are.

#include "engine/data/decode.h"

namespace halfwatt {

Result<Image> decode_image(std::span<const std::byte> bytes,
                           const std::string& name,
                           const DecodePolicy&) {
  if (bytes.empty() || bytes[0] != std::byte{0x89}) {
    return bad_input(name + ": no PNG");
  }
  return Image{1, 1, {255, 255, 255}};
}

}  // namespace halfwatt

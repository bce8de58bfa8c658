// Reads any bytes as an EXIF block, and turns a picture as it says.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "engine/data/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int orientation =
      halfwatt::exif_orientation(std::as_bytes(std::span(data, size))).value_or(1);
  HALFWATT_CHECK(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8");
  const auto image = halfwatt::upright({2, 1, {1, 2, 3, 4, 5, 6}}, orientation);
  HALFWATT_CHECK(image.width * image.height == 2 && image.pixels.size() == 6,
                 "no pixel is lost");
  return 0;
}

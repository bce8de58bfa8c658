// Reads any bytes as a CSV of pixels; the first byte says how many channels and what side its
// images have.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/data/image_set.h"
#include "refusal.h"

namespace halfwatt {
namespace {

const std::string kFile = "pixels.csv";

void read(std::string_view text, const PixelCsv& format) {
  const auto set = parse_pixel_csv(text, kFile, format);
  if (!set) {
    return check_refusal(set.error(), kFile);
  }
  HALFWATT_CHECK(set->size() > 0, "a file that is read has images");
  HALFWATT_CHECK(
      set->images.shape() == (Shape{set->size(), format.channels, format.side, format.side}),
      "images have the size that was asked for");
  HALFWATT_CHECK(std::ranges::all_of(set->images.as<float>(),
                                     [](float pixel) { return pixel >= -1 && pixel <= 1; }),
                 "pixels are in range");
  HALFWATT_CHECK(
      std::ranges::all_of(set->labels,
                          [&](std::int64_t at) { return at >= 0 && at < set->classes; }),
      "labels are classes");
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) {
    const halfwatt::PixelCsv format{data[0] % 2 == 0 ? 1 : 3, 1 + data[0] / 2 % 4, 16};
    halfwatt::read({reinterpret_cast<const char*>(data) + 1, size - 1}, format);
  }
  return 0;
}

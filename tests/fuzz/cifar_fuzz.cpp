// Reads any bytes as a file of CIFAR: the first byte says of which layout, and whether they are
// its records or the names of its classes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/data/cifar.h"
#include "refusal.h"

namespace halfwatt {
namespace {

const std::string kFile = "data_batch_1.bin";

void read_records(std::span<const std::uint8_t> bytes, const CifarLayout& layout) {
  const auto labels = cifar_labels(bytes, kFile, layout);
  if (!labels) {
    return check_refusal(labels.error(), kFile);
  }
  HALFWATT_CHECK(!labels->empty(), "a file that is read has images");
  HALFWATT_CHECK(labels->size() * layout.record_bytes() == bytes.size(), "no byte is left");
  for (std::size_t at = 0; at < labels->size(); ++at) {
    const std::int64_t label = (*labels)[at];
    HALFWATT_CHECK(label >= 0 && label < layout.classes, "a label is one of the classes");
    const auto pixels =
        bytes.subspan(at * layout.record_bytes() + layout.label_bytes).first(3072);
    const Image image = cifar_image(pixels);
    HALFWATT_CHECK(image.pixels[0] == pixels[0] && image.pixels[3071] == pixels[3071],
                   "pixels stay");
  }
}

void read_names(std::string_view text, const CifarLayout& layout) {
  const auto names = cifar_names(text, kFile, layout);
  if (!names) {
    return check_refusal(names.error(), kFile);
  }
  HALFWATT_CHECK(std::ssize(*names) == layout.classes, "every class has a name");
  HALFWATT_CHECK(std::ranges::none_of(*names, &std::string::empty), "no name is empty");
}

}  // namespace
}  // namespace halfwatt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) {
    const auto& layout = data[0] % 2 == 0 ? halfwatt::kCifar10 : halfwatt::kCifar100;
    if (data[0] / 2 % 2 == 0) {
      halfwatt::read_records({data + 1, size - 1}, layout);
    } else {
      halfwatt::read_names({reinterpret_cast<const char*>(data) + 1, size - 1}, layout);
    }
  }
  return 0;
}

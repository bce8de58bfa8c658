#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "engine/data/source.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt {
namespace {

// An order of as many places is 8 GB.
constexpr std::int64_t kMostImages = 1'000'000'000;
constexpr std::int64_t kMostClasses = 1'000'000;
constexpr std::int64_t kMostSide = 8192;

/// From 16 random bits to a normal byte: the inverse of its distribution, by table.
class NormalBytes {
 public:
  NormalBytes() {
    std::size_t at = 0;
    for (int value = 0; value < 256; ++value) {
      const double deviations = (value + 0.5 - 127.5) / 63.75;
      const double below = 0.5 * std::erfc(-deviations / std::numbers::sqrt2);
      const auto end =
          value == 255 ? table_.size() : static_cast<std::size_t>(std::lround(below * 0x1p16));
      for (; at < end; ++at) {
        table_[at] = static_cast<std::uint8_t>(value);
      }
    }
  }
  std::uint8_t operator[](std::uint32_t bits) const { return table_[bits & 0xFFFFU]; }

 private:
  std::array<std::uint8_t, 0x10000> table_{};
};

class SyntheticSource final : public Source {
 public:
  explicit SyntheticSource(const Synthetic& synthetic)
      : synthetic_(synthetic),
        classes_(ClassMap::numbered(synthetic.classes)),
        random_(synthetic.seed, "data.synthetic", 0) {}

  std::int64_t size() const override { return synthetic_.images; }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override { return place % synthetic_.classes; }
  std::string name(std::int64_t place) const override {
    return fmt::format("synthetic:{} image {}", synthetic_.images, place);
  }
  Result<Image> read(std::int64_t place) const override {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    const std::int64_t side = synthetic_.side;
    Image image{side, side,
                std::vector<std::uint8_t>(static_cast<std::size_t>(3 * side * side))};
    const auto sample = static_cast<std::uint64_t>(place);
    for (std::size_t at = 0, block = 0; at < image.pixels.size(); ++block) {
      for (const std::uint32_t word :
           random_.block(sample, static_cast<std::uint32_t>(block))) {
        for (const std::uint32_t bits : {word, word >> 16}) {
          if (at < image.pixels.size()) {
            image.pixels[at++] = bytes_[bits];
          }
        }
      }
    }
    return image;
  }

 private:
  Synthetic synthetic_;
  ClassMap classes_;
  KeyedRandom random_;
  NormalBytes bytes_;
};

Result<void> check(std::string_view what, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most) {
    return bad_input(fmt::format("synthetic: {} {}; needed 1 to {}", value, what, most));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Source>> open_synthetic(const Synthetic& synthetic) {
  for (const auto& checked : {check("images", synthetic.images, kMostImages),
                              check("classes", synthetic.classes, kMostClasses),
                              check("pixels a side", synthetic.side, kMostSide)}) {
    if (!checked) {
      return checked.error();
    }
  }
  return std::unique_ptr<Source>(std::make_unique<SyntheticSource>(synthetic));
}

}  // namespace halfwatt

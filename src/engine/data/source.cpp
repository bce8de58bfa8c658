#include "engine/data/source.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "engine/data/cifar.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSynthetic = "synthetic:";
constexpr std::string_view kKinds =
    "a folder with a folder of .jpg, .jpeg or .png files for each class, one with the .bin "
    "files of CIFAR, a .csv or .csv.gz of pixels, or synthetic:N";

Result<std::unique_ptr<Source>> open_random(const std::string& where, Synthetic synthetic) {
  const std::string_view count = std::string_view(where).substr(kSynthetic.size());
  const auto [end, error] =
      std::from_chars(count.data(), count.data() + count.size(), synthetic.images);
  if (error != std::errc() || end != count.data() + count.size()) {
    return bad_input(fmt::format("{}: needed a whole number of images behind {}",
                                 quoted_name(where), kSynthetic));
  }
  return open_synthetic(synthetic);
}

}  // namespace

Result<Image> Source::read_part(std::int64_t place, const PartOf& part) const {
  auto image = read(place);
  if (image && part) {
    return part_of(*image, part);
  }
  return image;
}

Result<std::unique_ptr<Source>> open_source(const std::string& where,
                                            const SourceOptions& options) {
  if (where.starts_with(kSynthetic)) {
    return open_random(where, options.synthetic);
  }
  std::error_code error;
  const fs::file_status status = fs::status(where, error);
  if (fs::is_directory(status)) {
    return cifar_in(where) != nullptr ? open_cifar(where, options.part)
                                      : open_image_folder(where, options.folder);
  }
  if (fs::exists(status) && (where.ends_with(".csv") || where.ends_with(".csv.gz"))) {
    return open_pixel_csv(where, options.pixels);
  }
  if (fs::exists(status)) {
    return bad_input(fmt::format("{}: is a file; needed {}", shown(where), kKinds));
  }
  return bad_input(fmt::format("{}: {}; needed {}", where.empty() ? "\"\"" : shown(where),
                               error ? error.message() : "not found", kKinds));
}

}  // namespace halfwatt

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/data/image.h"

namespace halfwatt {

/// One of the two binary layouts: a file is records of `label_bytes` labels and 3072 pixels.
struct CifarLayout {
  std::string_view name;
  std::size_t label_bytes;    ///< the last of them is the one that is trained on
  std::int64_t classes;       ///< of that label
  std::int64_t superclasses;  ///< of the one before it; 0 if there is none
  std::string_view names;     ///< the file that names the classes

  std::size_t record_bytes() const { return label_bytes + 3072; }
};
extern const CifarLayout kCifar10;
extern const CifarLayout kCifar100;

/// Whether `folder` holds a file of one of the layouts, and of which; nullptr if of none.
const CifarLayout* cifar_in(const std::filesystem::path& folder);

/// The labels of the records in `bytes`, each below the layout's classes. Errors (bad_input):
/// `name`, record and byte, what was found and what was needed.
Result<std::vector<std::int64_t>> cifar_labels(std::span<const std::uint8_t> bytes,
                                               const std::string& name,
                                               const CifarLayout& layout);

/// The 32x32 image in one record's pixels: 1024 reds, as many greens and as many blues.
Image cifar_image(std::span<const std::uint8_t> pixels);

/// The names in `text`, one a line, as many as the layout has classes. Errors (bad_input):
/// `name` and the line.
Result<std::vector<std::string>> cifar_names(std::string_view text,
                                             const std::string& name,
                                             const CifarLayout& layout);

}  // namespace halfwatt

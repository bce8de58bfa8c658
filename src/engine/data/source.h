#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/data/class_map.h"
#include "engine/data/decode.h"
#include "engine/data/image.h"
#include "engine/data/image_set.h"

namespace halfwatt {

/// Labelled images, each at a place from 0 to size() - 1 that never changes. All of it is
/// thread safe.
class Source {
 public:
  virtual ~Source() = default;

  virtual std::int64_t size() const = 0;
  virtual const ClassMap& classes() const = 0;
  /// From 0 to classes().size() - 1.
  virtual std::int64_t label(std::int64_t place) const = 0;
  /// What people find the image by: its path, or a file and a number in it.
  virtual std::string name(std::int64_t place) const = 0;
  /// Decodes the image. Errors (bad_input): its name, what was found and what was needed.
  virtual Result<Image> read(std::int64_t place) const = 0;
  /// A part of it, resized, or all of it where none is named: less work for some sources.
  virtual Result<Image> read_part(std::int64_t place, const PartOf& part) const;
  /// What was left out or looked odd when it was opened, a line each.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Images read so far, each counted once, that are stored otherwise than their EXIF
  /// orientation shows them, and were turned.
  virtual std::int64_t turned() const { return 0; }
};

/// How the folders of an image folder become labels.
enum class ClassOrder {
  bytes,    ///< torchvision's: by the bytes of their names, so 1, 10, 2
  natural,  ///< timm's: numbers as numbers, capitals like small letters, so 1, 2, 10
};

/// A folder with a folder of .jpg, .jpeg and .png files for each class, at any depth below it;
/// files in torchvision's order. Folders whose name begins with a dot are left out, links that
/// lead to a folder of the same class again are not followed; remarks() tells.
/// Errors (bad_input): a folder cannot be read, or there is no image at all.
struct ImageFolderOptions {
  ClassOrder order = ClassOrder::bytes;
  DecodePolicy decode;
};
Result<std::unique_ptr<Source>> open_image_folder(const std::filesystem::path& folder,
                                                  const ImageFolderOptions& options);

/// A folder with the binary version of CIFAR-10 (data_batch_1.bin to 5, test_batch.bin,
/// batches.meta.txt) or CIFAR-100 (train.bin, test.bin, fine_label_names.txt), read into
/// memory. Errors (bad_input): file, record and byte, what was found and what was needed.
enum class CifarPart { train, test };
Result<std::unique_ptr<Source>> open_cifar(const std::filesystem::path& folder, CifarPart part);

/// A CSV of pixels in memory (read_pixel_csv), pixels scaled to 0 to 255 and rounded; classes
/// are called by their numbers. One channel is grey, three are red, green and blue; other
/// numbers are an error.
Result<std::unique_ptr<Source>> open_pixel_csv(const std::filesystem::path& path,
                                               const PixelCsv& format);

/// Random images, to try speed with: every value is normal around 127.5 with a deviation of
/// 63.75 (a quarter of what a byte holds), clipped and rounded, and follows from (seed, place)
/// alone; labels go round. Nothing of it is in memory.
struct Synthetic {
  std::int64_t images = 0;
  std::int64_t classes = 1000;
  std::int64_t side = 224;
  std::uint64_t seed = 0;
};
/// Errors (bad_input): a number out of range.
Result<std::unique_ptr<Source>> open_synthetic(const Synthetic& synthetic);

/// What each kind of source needs to be told; those of other kinds do not matter.
struct SourceOptions {
  ImageFolderOptions folder;
  CifarPart part = CifarPart::train;
  PixelCsv pixels;
  Synthetic synthetic;  ///< but for `images`, which the name says
};

/// The source that `where` means: `synthetic:N`, a file named .csv or .csv.gz, a folder with
/// CIFAR's .bin files, or else an image folder. Errors (bad_input): what there is, and what
/// could have been there.
Result<std::unique_ptr<Source>> open_source(const std::string& where,
                                            const SourceOptions& options);

}  // namespace halfwatt

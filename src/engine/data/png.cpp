// Reads PNGs with libpng. Errors of libpng leave by Escape: between run() and leave() nothing
// lives that needs a destructor.

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/data/codecs.h"
#include "engine/data/escape.h"
#include "engine/data/exif.h"

namespace halfwatt {
namespace {

// The largest of a PNG's own: its sides have 31 bits.
constexpr png_uint_32 kLongestSide = 0x7fffffff;
constexpr png_byte kExif[] = "eXIf";
constexpr png_uint_32 kMostChunks = 100;             // that libpng keeps; we ask for EXIF alone
constexpr png_alloc_size_t kLargestChunk = 1 << 20;  // of those; a JPEG's EXIF has 64 KiB
// Deflate writes at least two bits for 258 bytes.
constexpr std::uint64_t kDeflateAtMost = 1032;

/// `row` of RGBA over white, as RGB; rounded as Pillow's paste() does.
void put_over_white(const std::uint8_t* row, std::int64_t width, std::uint8_t* to) {
  for (std::int64_t x = 0; x < width; ++x, row += 4) {
    const unsigned alpha = row[3];
    for (int channel = 0; channel < 3; ++channel) {
      const unsigned sum = row[channel] * alpha + 255U * (255U - alpha);
      *to++ = static_cast<std::uint8_t>((sum + 127U) / 255U);
    }
  }
}

class PngReader {
 public:
  PngReader(std::span<const std::byte> bytes,
            const std::string& name,
            const DecodePolicy& policy)
      : bytes_(bytes), name_(name), policy_(policy) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Result<StoredImage> read() {
    if (!escape_.run([this] { read_header(); })) {
      return refused(problem_);
    }
    const std::uint64_t bits = std::uint64_t{png_get_channels(png_, info_)} *
                               png_get_bit_depth(png_, info_) *
                               static_cast<std::uint64_t>(image_.width * image_.height);
    const auto size = check_size(image_, bits / 8 / kDeflateAtMost, bytes_.size(), policy_);
    if (!size) {
      return refused(size.error().message);
    }
    if (!escape_.run([this] { choose_rgb(); })) {
      return refused(problem_);
    }
    image_.pixels.resize(static_cast<std::size_t>(3 * image_.width * image_.height));
    if (alpha_) {
      const std::int64_t rows = passes_ > 1 ? image_.height : 1;
      rgba_.resize(static_cast<std::size_t>(4 * image_.width * rows));
    }
    if (!escape_.run([this] { read_rows(); })) {
      return refused(problem_);
    }
    return StoredImage{std::move(image_), orientation()};
  }

 private:
  static PngReader& of(png_structp png) {
    return *static_cast<PngReader*>(png_get_error_ptr(png));
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    PngReader& self = of(png);
    if (self.problem_.empty()) {
      self.problem_ =
          fmt::format("libpng found \"{}\" {}; needs a valid PNG", text, self.where());
    }
    self.escape_.leave();
  }

  // libpng goes on behind what it warns of, and no pixel depends on it.
  static void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}

  static void on_read(png_structp png, png_bytep to, png_size_t count) {
    PngReader& self = of(png);
    if (count > self.bytes_.size() - self.at_) {
      self.problem_ = fmt::format("ends after {} bytes, {}; needs a whole PNG, to its IEND",
                                  self.bytes_.size(), self.where());
      self.escape_.leave();
    }
    std::memcpy(to, self.bytes_.data() + self.at_, count);
    self.at_ += count;
  }

  void read_header() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      problem_ = "libpng cannot be started: it is another version, or memory is full";
      escape_.leave();
    }
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, kLongestSide, kLongestSide);
    png_set_chunk_cache_max(png_, kMostChunks);
    png_set_chunk_malloc_max(png_, kLargestChunk);
    // Texts and profiles, which may be bombs, are skipped. EXIF is kept as if libpng did not
    // know it: what it knows of it (1.6.39) is to allocate as much as the chunk says to have.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, kExif, 1);
    png_read_info(png_, info_);
    image_.width = png_get_image_width(png_, info_);
    image_.height = png_get_image_height(png_, info_);
  }

  void choose_rgb() {
    png_set_expand(png_);    // palettes, 1 to 4 bits, tRNS
    png_set_scale_16(png_);  // v * 255 / 65535, rounded; not the high byte
    png_set_gray_to_rgb(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    alpha_ = png_get_channels(png_, info_) == 4;
    HALFWATT_CHECK(png_get_bit_depth(png_, info_) == 8 &&
                       png_get_channels(png_, info_) == (alpha_ ? 4 : 3),
                   "libpng gives RGB or RGBA of 8 bits");
  }

  void read_rows() {
    const std::int64_t width = image_.width;
    for (int pass = 1; pass <= passes_; ++pass) {
      for (row_ = 0; row_ < image_.height; ++row_) {
        std::uint8_t* to = image_.pixels.data() + 3 * width * row_;
        std::uint8_t* into = alpha_ ? rgba_.data() + (passes_ > 1 ? 4 * width * row_ : 0) : to;
        png_read_row(png_, into, nullptr);
        if (alpha_ && pass == passes_) {
          put_over_white(into, width, to);
        }
      }
    }
    png_read_end(png_, info_);
  }

  std::optional<int> orientation() const {
    png_unknown_chunkp chunks = nullptr;
    const int count = png_get_unknown_chunks(png_, info_, &chunks);
    return count > 0 ? exif_orientation(std::as_bytes(std::span(chunks->data, chunks->size)))
                     : std::nullopt;
  }

  std::string where() const {
    return image_.height == 0 ? "in its header"
                              : fmt::format("at row {} of {}", row_, image_.height);
  }

  Error refused(const std::string& what) const {
    return bad_input(fmt::format("{}: {}", name_, what));
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  const std::string& name_;
  const DecodePolicy& policy_;
  Escape escape_;
  std::string problem_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Image image_;
  std::vector<std::uint8_t> rgba_;  // of one row, or of all where they come interlaced
  bool alpha_ = false;
  int passes_ = 1;
  std::int64_t row_ = 0;
};

}  // namespace

Result<StoredImage> decode_png(std::span<const std::byte> bytes,
                               const std::string& name,
                               const DecodePolicy& policy) {
  return PngReader(bytes, name, policy).read();
}

}  // namespace halfwatt

// Reads JPEGs with libjpeg. Errors of libjpeg leave by Escape: between run() and leave()
// nothing lives that needs a destructor.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

// Neither includes what it needs.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "base/check.h"
#include "engine/data/codecs.h"
#include "engine/data/escape.h"
#include "engine/data/exif.h"
#include "engine/data/row_resize.h"

namespace halfwatt {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kLongestMarker = 0xffff;
constexpr JDIMENSION kRowsAtATime = 8;
// Colours are smoothed over what lies beside them, and a box's edge counts as the picture's: a
// box is read with so many pixels around it. A sample of colour is four pixels wide at most.
constexpr std::int64_t kSmoothed = 8;
// Rows that are in memory between decoding and a resize; a multiple of what that takes at once.
constexpr std::int64_t kStrip = 8;
static_assert(kStrip % kRowsAtOnce == 0 && kStrip >= kSmoothed);
// A row that begins at a multiple of a register's bytes is written past the caches by
// libjpeg-turbo, to be waited for by who reads it next. Rows of a strip begin beside one.
constexpr std::int64_t kRegister = 32;
constexpr std::int64_t kOffRegister = 8;

/// a * b / 255, rounded; Pillow's MULDIV255.
unsigned part_of(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return ((product >> 8U) + product) >> 8U;
}

/// Inks as Adobe stores them, 255 for none, as RGB; the arithmetic of Pillow's cmyk2rgb.
void put_inks(const std::uint8_t* row, std::int64_t width, std::uint8_t* to) {
  for (std::int64_t x = 0; x < width; ++x, row += 4) {
    const unsigned light = row[3];
    for (int ink = 0; ink < 3; ++ink) {
      *to++ = static_cast<std::uint8_t>(light - part_of(255U - row[ink], light));
    }
  }
}

class JpegReader {
 public:
  JpegReader(std::span<const std::byte> bytes,
             const std::string& name,
             const DecodePolicy& policy,
             const PartOf& part)
      : bytes_(bytes), name_(name), policy_(policy), part_(part) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = on_end;
    source_.skip_input_data = on_skip;
    source_.resync_to_restart = jpeg_resync_to_restart;
    progress_.progress_monitor = on_progress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Result<StoredImage> read() {
    if (!escape_.run([this] { read_header(); })) {
      return refused(problem_);
    }
    image_.width = info_.image_width;
    image_.height = info_.image_height;
    const auto size = check_size(image_, fewest_bytes(), bytes_.size(), policy_);
    if (!size) {
      return refused(size.error().message);
    }
    if (info_.data_precision != 8) {  // a libjpeg of 12 bits would say so only at the rows
      return refused(fmt::format("{} bits a sample; needs 8", info_.data_precision));
    }
    const int components = info_.num_components;
    if (components != 1 && components != 3 && components != 4) {
      return refused(
          fmt::format("{} components; needs 1 (grey), 3 (colour) or 4 (CMYK)", components));
    }
    inked_ = components == 4;
    const std::optional<int> named = orientation();  // libjpeg forgets it with the last row
    if (part_ && comes_in_rows(named)) {
      const ResizedPart wanted = part_(image_.width, image_.height);
      if (!columns_first(wanted.how)) {
        return read_part(wanted, named);
      }
    }
    return read_whole(named);
  }

 private:
  template <class Info>
  static JpegReader& of(Info* info) {
    return *static_cast<JpegReader*>(info->client_data);
  }

  [[noreturn]] static void on_error(j_common_ptr info) {
    JpegReader& self = of(info);
    self.problem_ = info->err->msg_code == JERR_BAD_PRECISION
                        ? fmt::format("{} bits a sample; needs 8", info->err->msg_parm.i[0])
                        : fmt::format("libjpeg found \"{}\" {}; needs a valid JPEG",
                                      self.library_text(), self.where());
    self.escape_.leave();
  }

  // libjpeg goes on behind a warning. Those of pixels that are not in the file are errors here:
  // grey or torn areas are no picture. The others (bytes between markers, a version, an order
  // of scans) change no pixel, and photos that everyone can see have them.
  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) {
      return;
    }
    switch (info->err->msg_code) {
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_ARITH_BAD_CODE:
      case JWRN_MUST_RESYNC:
        on_error(info);
      default:
        return;
    }
  }

  static boolean on_end(j_decompress_ptr info) {
    JpegReader& self = of(info);
    self.problem_ =
        fmt::format("ends after {} bytes, {}; needs a whole JPEG, to its end marker (ff d9)",
                    self.bytes_.size(), self.where());
    self.escape_.leave();
  }

  static void on_skip(j_decompress_ptr info, long count) {
    JpegReader& self = of(info);
    const std::size_t skipped = count < 0 ? 0 : static_cast<std::size_t>(count);
    if (skipped > self.source_.bytes_in_buffer) {
      on_end(info);
    }
    self.source_.next_input_byte += skipped;
    self.source_.bytes_in_buffer -= skipped;
  }

  // Called once or more in every scan of a picture that has several.
  static void on_progress(j_common_ptr info) {
    JpegReader& self = of(info);
    const jpeg_decompress_struct& now = self.info_;
    if (now.input_scan_number > self.policy_.most_scans) {
      self.problem_ =
          fmt::format("more than {} scans; needs at most that many", self.policy_.most_scans);
      self.escape_.leave();
    }
    // In a progressive JPEG a component begins with the high bits of its blocks' means.
    const bool first = now.progressive_mode == 0 || (now.Ss == 0 && now.Ah == 0);
    for (int i = 0; i < now.comps_in_scan && first; ++i) {
      self.has_component_[static_cast<std::size_t>(now.cur_comp_info[i]->component_index)] =
          true;
    }
  }

  // libjpeg makes grey of what has no scan.
  void check_components() {
    const auto end = has_component_.begin() + info_.num_components;
    const auto missing = std::find(has_component_.begin(), end, false);
    if (jpeg_has_multiple_scans(&info_) != 0 && missing != end) {
      problem_ = fmt::format("no scan of component {} of {}; needs one of each",
                             missing - has_component_.begin() + 1, info_.num_components);
      escape_.leave();
    }
  }

  void read_header() {
    jpeg_create_decompress(&info_);
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes_.data());
    source_.bytes_in_buffer = bytes_.size();
    info_.src = &source_;
    info_.progress = &progress_;
    jpeg_save_markers(&info_, kExifMarker, kLongestMarker);
    jpeg_read_header(&info_, TRUE);
  }

  Result<StoredImage> read_whole(std::optional<int> named) {
    const std::int64_t stride = 3 * image_.width;
    image_.pixels.resize(static_cast<std::size_t>(stride * image_.height));
    inks_.resize(static_cast<std::size_t>(inked_ ? 4 * image_.width : 0));
    const bool read = escape_.run([this, stride] {
      start();
      read_to(image_.height, {image_.pixels.data(), stride});
      jpeg_finish_decompress(&info_);
    });
    if (!read) {
      return refused(problem_);
    }
    return StoredImage{std::move(image_), named};
  }

  /// A few rows at a time, which the resize takes while they are in the innermost cache.
  Result<StoredImage> read_part(const ResizedPart& wanted, std::optional<int> named) {
    RowResize resize(wanted);
    const Box& from = resize.from();
    HALFWATT_CHECK(within(from, image_.width, image_.height), "a part lies within its picture");
    const std::int64_t stride = (3 * image_.width / kRegister + 1) * kRegister;
    std::vector<std::uint8_t> strip(
        static_cast<std::size_t>(kOffRegister + kStrip * stride + kReadBehind));
    const Rows<std::uint8_t> rows = {strip.data() + kOffRegister, stride};
    std::int64_t left = 0;  // column that rows begin at
    const bool begun = escape_.run([&] {
      left = start_at(from);
      read_to(from.top, rows);
    });
    if (!begun) {
      return refused(problem_);
    }
    for (std::int64_t row = 0; row < from.height; row += kStrip) {
      const std::int64_t count = std::min(kStrip, from.height - row);
      if (!escape_.run([&] { read_to(from.top + row + count, rows); })) {
        return refused(problem_);
      }
      resize.take({rows.first + 3 * (from.left - left), stride}, count);
    }
    if (!escape_.run([&] { finish_below(rows); })) {
      return refused(problem_);
    }
    return StoredImage{resize.result(), named, true};
  }

  void start() {
    info_.out_color_space = inked_ ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    check_components();
  }

  /// In front of `part`, and where rows begin from now on: what lies around it in whole blocks.
  JDIMENSION start_at(const Box& part) {
    start();
    const std::int64_t begin = std::max<std::int64_t>(part.left - kSmoothed, 0);
    const std::int64_t end = std::min(part.left + part.width + kSmoothed, image_.width);
    auto left = static_cast<JDIMENSION>(begin);
    auto width = static_cast<JDIMENSION>(end - begin);
    if (width < info_.output_width) {
      jpeg_crop_scanline(&info_, &left, &width);
    }
    skip_to(part.top - kSmoothed);
    return left;
  }

  /// The last row is always read: libjpeg takes no look at the data of what is skipped to the
  /// end, and a picture is whole or refused.
  void finish_below(const Rows<std::uint8_t>& rows) {
    skip_to(image_.height - 1);
    read_to(image_.height, rows);
    jpeg_finish_decompress(&info_);
  }

  void skip_to(std::int64_t row) {
    const std::int64_t count = row - info_.output_scanline;
    if (count > 0) {
      jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(count));
    }
  }

  /// The next rows, up to `end`.
  void read_to(std::int64_t end, const Rows<std::uint8_t>& rows) {
    std::uint8_t* to = rows.first;
    while (info_.output_scanline < end) {
      std::array<JSAMPROW, kRowsAtATime> pointers;
      JDIMENSION count = 0;
      for (; count < kRowsAtATime && info_.output_scanline + count < end; ++count) {
        pointers[count] = to + count * rows.stride;
      }
      to += read_some(pointers.data(), count) * rows.stride;
    }
  }

  /// Up to `count` rows; how many.
  std::int64_t read_some(JSAMPROW* rows, JDIMENSION count) {
    if (!inked_) {
      return jpeg_read_scanlines(&info_, rows, count);
    }
    JSAMPROW inks = inks_.data();
    jpeg_read_scanlines(&info_, &inks, 1);
    put_inks(inks, info_.output_width, rows[0]);
    return 1;
  }

  // What is turned has its part elsewhere. Of a progressive JPEG that lacks its last scans
  // libjpeg smooths whole blocks over their neighbours, and at a box's edge has others.
  bool comes_in_rows(std::optional<int> orientation) const {
    const bool turns = policy_.apply_orientation && orientation.value_or(kUpright) != kUpright;
    return !turns && !inked_ && info_.progressive_mode == 0;
  }

  /// Huffman codes take a bit at least, and every block has one. (An arithmetic coder may
  /// write less.) Of the component with the fewest blocks, that a file may have more of.
  std::uint64_t fewest_bytes() const {
    std::uint64_t blocks = std::numeric_limits<std::uint64_t>::max();
    for (const auto& each :
         std::span(info_.comp_info, static_cast<std::size_t>(info_.num_components))) {
      blocks = std::min(blocks, std::uint64_t{each.width_in_blocks} * each.height_in_blocks);
    }
    return info_.arith_code != 0 ? 0 : blocks / 8;
  }

  std::optional<int> orientation() const {
    for (auto marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      const auto named =
          exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
      if (named) {  // XMP comes under this marker too, and is none
        return named;
      }
    }
    return std::nullopt;
  }

  std::string library_text() {
    char text[JMSG_LENGTH_MAX] = {};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
    return text;
  }

  std::string where() const {
    if (image_.height == 0) {
      return "in its header";
    }
    const std::string scan =
        info_.input_scan_number > 1 ? fmt::format(" in scan {}", info_.input_scan_number) : "";
    return fmt::format("at row {} of {}{}", info_.output_scanline, image_.height, scan);
  }

  Error refused(const std::string& what) const {
    return bad_input(fmt::format("{}: {}", name_, what));
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  const DecodePolicy& policy_;
  const PartOf& part_;
  Escape escape_;
  std::string problem_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::array<bool, MAX_COMPONENTS> has_component_{};
  Image image_;
  bool inked_ = false;
  std::vector<std::uint8_t> inks_;  // of one row
};

}  // namespace

Result<StoredImage> decode_jpeg(std::span<const std::byte> bytes,
                                const std::string& name,
                                const DecodePolicy& policy,
                                const PartOf& part) {
  return JpegReader(bytes, name, policy, part).read();
}

}  // namespace halfwatt

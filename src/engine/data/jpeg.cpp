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

namespace halfwatt {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kLongestMarker = 0xffff;
constexpr JDIMENSION kRowsAtATime = 8;
// Colours are smoothed over what lies beside them, and a box's edge counts as the picture's: a
// box is read with so many pixels around it. A sample of colour is four pixels wide at most.
constexpr std::int64_t kSmoothed = 8;

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
    image_.pixels.resize(static_cast<std::size_t>(3 * image_.width * image_.height));
    inks_.resize(static_cast<std::size_t>(inked_ ? 4 * image_.width : 0));
    const std::optional<int> named = orientation();  // libjpeg forgets it with the last row
    needed_ = may_be_a_part(named) ? around(part_(image_.width, image_.height)) : whole(image_);
    if (!escape_.run([this] { read_rows(); })) {
      return refused(problem_);
    }
    return StoredImage{std::move(image_), named};
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

  void read_rows() {
    info_.out_color_space = inked_ ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    check_components();
    auto left = static_cast<JDIMENSION>(needed_.left);
    auto width = static_cast<JDIMENSION>(needed_.width);
    if (width < info_.output_width) {
      jpeg_crop_scanline(&info_, &left, &width);  // to what lies around them in whole blocks
    }
    skip_to(needed_.top);
    read_to(needed_.top + needed_.height, left);
    // The last row is always read: libjpeg takes no look at the data of what is skipped to the
    // end, and a picture is whole or refused.
    if (info_.output_scanline < info_.output_height) {
      skip_to(image_.height - 1);
      read_to(image_.height, left);
    }
    jpeg_finish_decompress(&info_);
  }

  void skip_to(std::int64_t row) {
    const std::int64_t count = row - info_.output_scanline;
    if (count > 0) {
      jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(count));
    }
  }

  /// Rows up to `end`, from column `left` on.
  void read_to(std::int64_t end, JDIMENSION left) {
    while (info_.output_scanline < end) {
      std::uint8_t* to =
          image_.pixels.data() + 3 * (image_.width * info_.output_scanline + left);
      if (inked_) {
        JSAMPROW row = inks_.data();
        jpeg_read_scanlines(&info_, &row, 1);
        put_inks(row, info_.output_width, to);
        continue;
      }
      std::array<JSAMPROW, kRowsAtATime> rows;
      JDIMENSION count = 0;
      for (; count < kRowsAtATime && info_.output_scanline + count < end; ++count) {
        rows[count] = to + 3 * image_.width * count;
      }
      jpeg_read_scanlines(&info_, rows.data(), count);
    }
  }

  // What is turned has its part elsewhere. Of a progressive JPEG that lacks its last scans
  // libjpeg smooths whole blocks over their neighbours, and at a box's edge has others.
  bool may_be_a_part(std::optional<int> orientation) const {
    const bool turns = policy_.apply_orientation && orientation.value_or(kUpright) != kUpright;
    return part_ && !turns && info_.progressive_mode == 0;
  }

  /// `part` and the pixels around it that count for it.
  Box around(const Box& part) const {
    HALFWATT_CHECK(within(part, image_.width, image_.height), "a part lies within its picture");
    const std::int64_t left = std::max<std::int64_t>(part.left - kSmoothed, 0);
    const std::int64_t top = std::max<std::int64_t>(part.top - kSmoothed, 0);
    return {left, top, std::min(part.left + part.width + kSmoothed, image_.width) - left,
            std::min(part.top + part.height + kSmoothed, image_.height) - top};
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
  Box needed_;
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

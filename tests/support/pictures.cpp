#include "support/pictures.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <vector>

// Neither includes what it needs.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include "base/check.h"
#include "base/rng.h"

namespace halfwatt {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return text;
}

constexpr std::array<jpeg_scan_info, 3> kApart = {
    {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}}};

void choose(jpeg_compress_struct& info, const JpegRecipe& recipe) {
  info.input_components = recipe.components;
  info.in_color_space = recipe.components == 3 ? JCS_RGB : JCS_UNKNOWN;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, recipe.quality, TRUE);
  if (recipe.components == 3) {
    info.comp_info[0].h_samp_factor = recipe.wide;
    info.comp_info[0].v_samp_factor = recipe.high;
  }
  info.arith_code = recipe.arithmetic ? TRUE : FALSE;
  if (recipe.progressive) {
    jpeg_simple_progression(&info);
  }
  if (recipe.apart) {
    info.scan_info = kApart.data();
    info.num_scans = static_cast<int>(kApart.size());
  }
}

}  // namespace

Image drawn_image(std::int64_t width, std::int64_t height, std::uint64_t seed) {
  Image image{width, height, {}};
  Rng rng(seed);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(x * 255 / width));
      image.pixels.push_back(static_cast<std::uint8_t>(y * 255 / height));
      image.pixels.push_back(static_cast<std::uint8_t>(rng.next() % 64));
    }
  }
  return image;
}

std::string jpeg_of(const Image& image, const JpegRecipe& recipe) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);  // a mistake here ends the test program with a word
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  choose(info, recipe);
  jpeg_start_compress(&info, TRUE);
  const auto components = static_cast<std::size_t>(recipe.components);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width) * components);
  while (info.next_scanline < info.image_height) {
    const std::uint8_t* from = image.pixels.data() + 3 * image.width * info.next_scanline;
    for (std::size_t at = 0; at < row.size(); ++at) {
      row[at] = from[at / components * 3 + at % components % 3];
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  return file;
}

std::string with_segment(const std::string& jpeg, const std::string& segment) {
  return jpeg.substr(0, 2) + segment + jpeg.substr(2);
}

std::size_t marker_at(const std::string& jpeg, unsigned char code) {
  const std::size_t at = jpeg.find(std::string{'\xff', static_cast<char>(code)});
  HALFWATT_CHECK(at != std::string::npos, "the marker is in the file");
  return at;
}

std::string exif_segment(int orientation) {
  using namespace std::string_literals;
  return "\xff\xe1\0\x22"s
         "Exif\0\0"s
         "MM\0\x2a\0\0\0\x08"s
         "\0\x01\x01\x12\0\x03\0\0\0\x01\0"s +
         static_cast<char>(orientation) + "\0\0\0\0\0\0"s;
}

std::string png_chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const uLong sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string png_start(const PngHeader& header) {
  std::string data = big_endian(header.width) + big_endian(header.height);
  data += static_cast<char>(header.depth);
  data += static_cast<char>(header.colour);
  data += std::string(2, '\0');
  data += static_cast<char>(header.interlaced ? 1 : 0);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", data);
}

std::string deflated(const std::string& data) {
  uLongf size = ::compressBound(static_cast<uLong>(data.size()));
  std::string packed(size, '\0');
  const int code = ::compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(data.data()),
                               static_cast<uLong>(data.size()), Z_BEST_COMPRESSION);
  HALFWATT_CHECK(code == Z_OK, "zlib packs what there is");
  packed.resize(size);
  return packed;
}

std::string png_of(const PngHeader& header,
                   const std::string& rows,
                   const std::string& chunks) {
  const std::size_t each = rows.size() / header.height;
  std::string filtered;
  for (std::size_t at = 0; at < rows.size(); at += each) {
    filtered += '\0' + rows.substr(at, each);
  }
  return png_start(header) + chunks + png_chunk("IDAT", deflated(filtered)) +
         png_chunk("IEND", "");
}

std::string png_of(const Image& image) {
  const PngHeader header{static_cast<std::uint32_t>(image.width),
                         static_cast<std::uint32_t>(image.height)};
  return png_of(header, std::string(image.pixels.begin(), image.pixels.end()));
}

std::string interlaced_png_of(const Image& image, std::uint8_t alpha) {
  struct Pass {
    std::int64_t x, y, step_x, step_y;
  };
  // Adam7: where each pass begins, and how far its pixels lie apart.
  constexpr std::array<Pass, 7> kPasses = {{{0, 0, 8, 8},
                                            {4, 0, 8, 8},
                                            {0, 4, 4, 8},
                                            {2, 0, 4, 4},
                                            {0, 2, 2, 4},
                                            {1, 0, 2, 2},
                                            {0, 1, 1, 2}}};
  std::string filtered;
  for (const Pass& pass : kPasses) {
    for (std::int64_t y = pass.y; y < image.height && pass.x < image.width; y += pass.step_y) {
      filtered += '\0';
      for (std::int64_t x = pass.x; x < image.width; x += pass.step_x) {
        const auto from = image.pixels.begin() + 3 * (y * image.width + x);
        filtered.append(from, from + 3);
        filtered += static_cast<char>(alpha);
      }
    }
  }
  const PngHeader header{static_cast<std::uint32_t>(image.width),
                         static_cast<std::uint32_t>(image.height), 8, 6, true};
  return png_start(header) + png_chunk("IDAT", deflated(filtered)) + png_chunk("IEND", "");
}

}  // namespace halfwatt

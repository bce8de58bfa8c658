#include "data/bare_jpeg.h"

#include <vector>

// Does not include what it needs.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace halfwatt {

void decode_eighth(std::span<const std::byte> jpeg) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&info, TRUE);
  info.scale_num = 1;
  info.scale_denom = 8;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  std::vector<JSAMPLE> pixels(std::size_t{3} * info.output_width);
  JSAMPROW row = pixels.data();
  while (info.output_scanline < info.output_height) {
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

}  // namespace halfwatt

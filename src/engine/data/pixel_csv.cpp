#include <fmt/format.h>
#include <zlib.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "engine/data/image_set.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kMostClasses = 100'000;

// gzread gives files that are not compressed as they are.
Result<std::string> read_all(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"),
                                                        ::gzclose);
  if (!file) {
    return bad_input(fmt::format("{}: cannot be opened", path.string()));
  }
  std::string text;
  char part[65536];
  int count = 0;
  while ((count = ::gzread(file.get(), part, sizeof part)) > 0) {
    text.append(part, static_cast<std::size_t>(count));
  }
  if (count < 0) {
    int code = 0;
    return bad_input(fmt::format("{}: {}", path.string(), ::gzerror(file.get(), &code)));
  }
  return text;
}

struct Line {
  std::string_view text;
  std::size_t number;
};

class Reader {
 public:
  Reader(const std::filesystem::path& path, const PixelCsv& format)
      : path_(path.string()),
        format_(format),
        pixels_(static_cast<std::size_t>(format.channels * format.side * format.side)) {}

  Result<ImageSet> run(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text = end == text.npos ? "" : text.substr(end + 1);
      if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
      }
      if (line.empty()) {
        continue;
      }
      if (const auto read = image({line, number}); !read) {
        return read.error();
      }
    }
    if (set_.labels.empty()) {
      return bad_input(fmt::format("{}: no image in it", path_));
    }
    const Shape shape{set_.size(), format_.channels, format_.side, format_.side};
    set_.images = Tensor::of<float>(DType::f32, shape, values_);
    return std::move(set_);
  }

 private:
  Result<void> image(const Line& line) {
    std::string_view rest = line.text;
    for (std::size_t at = 0; at < pixels_; ++at) {
      double pixel = 0;
      if (!take(rest, pixel) || pixel < 0 || pixel > format_.largest) {
        return bad_input(fmt::format("{}:{}: pixel {} of {}, needs 0 to {:g}", path_,
                                     line.number, at + 1, pixels_, format_.largest));
      }
      values_.push_back(static_cast<float>(pixel / format_.largest * 2 - 1));
    }
    std::int64_t label = -1;
    if (!take(rest, label) || !rest.empty() || label < 0 || label >= kMostClasses) {
      return bad_input(
          fmt::format("{}:{}: needs one label, a whole number from 0, behind {} pixels", path_,
                      line.number, pixels_));
    }
    set_.labels.push_back(label);
    set_.classes = std::max(set_.classes, label + 1);
    return {};
  }

  template <class T>
  static bool take(std::string_view& rest, T& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) {
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty() && rest.front() != ',') {
      return false;
    }
    rest.remove_prefix(rest.empty() ? 0 : 1);
    return true;
  }

  std::string path_;
  PixelCsv format_;
  std::size_t pixels_;
  std::vector<float> values_;
  ImageSet set_;
};

}  // namespace

Result<ImageSet> read_pixel_csv(const std::filesystem::path& path, const PixelCsv& format) {
  const auto text = read_all(path);
  if (!text) {
    return text.error();
  }
  return Reader(path, format).run(*text);
}

}  // namespace halfwatt

#include <fmt/format.h>
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/data/image_set.h"
#include "engine/data/source.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kMostClasses = 100'000;

// gzread gives files that are not compressed as they are.
Result<std::string> read_all(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"),
                                                        ::gzclose);
  if (!file) {
    return bad_input(fmt::format("{}: cannot be opened", shown(path)));
  }
  std::string text;
  char part[65536];
  int count = 0;
  while ((count = ::gzread(file.get(), part, sizeof part)) > 0) {
    text.append(part, static_cast<std::size_t>(count));
  }
  int code = Z_OK;
  const char* what = ::gzerror(file.get(), &code);
  if (count < 0 || code != Z_OK) {  // the latter alone where a gzipped file ends early
    return bad_input(
        fmt::format("{}: {}", shown(path), code == Z_ERRNO ? "cannot be read" : what));
  }
  return text;
}

struct Line {
  std::string_view text;
  std::size_t number;
};

class Reader {
 public:
  Reader(const std::string& name, const PixelCsv& format)
      : path_(name),
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
      if (!take(rest, pixel) || !(pixel >= 0 && pixel <= format_.largest)) {
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

// The largest pixel as a byte; images are shown and augmented as bytes.
constexpr double kWhite = 255;

class PixelCsvSource final : public Source {
 public:
  PixelCsvSource(ImageSet set, std::string name)
      : set_(std::move(set)),
        classes_(ClassMap::numbered(set_.classes)),
        name_(std::move(name)) {}

  std::int64_t size() const override { return set_.size(); }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override {
    return set_.labels.at(static_cast<std::size_t>(place));
  }
  std::string name(std::int64_t place) const override {
    return fmt::format("{} image {}", name_, place + 1);
  }
  Result<Image> read(std::int64_t place) const override {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    const auto channels = static_cast<std::size_t>(set_.images.shape()[1]);
    const std::int64_t side = set_.images.shape()[2];
    const auto plane = static_cast<std::size_t>(side * side);
    const auto from = set_.images.as<float>().subspan(
        static_cast<std::size_t>(place) * channels * plane, channels * plane);
    Image image{side, side, std::vector<std::uint8_t>(3 * plane)};
    for (std::size_t at = 0; at < 3 * plane; ++at) {
      const float pixel = from[at % 3 % channels * plane + at / 3];  // -1 to 1
      image.pixels[at] = static_cast<std::uint8_t>(std::lround((pixel + 1.0) / 2 * kWhite));
    }
    return image;
  }

 private:
  ImageSet set_;
  ClassMap classes_;
  std::string name_;
};

}  // namespace

Result<ImageSet> parse_pixel_csv(std::string_view text,
                                 const std::string& name,
                                 const PixelCsv& format) {
  return Reader(name, format).run(text);
}

Result<ImageSet> read_pixel_csv(const std::filesystem::path& path, const PixelCsv& format) {
  const auto text = read_all(path);
  if (!text) {
    return text.error();
  }
  return parse_pixel_csv(*text, shown(path), format);
}

Result<std::unique_ptr<Source>> open_pixel_csv(const std::filesystem::path& path,
                                               const PixelCsv& format) {
  if (format.channels != 1 && format.channels != 3) {
    return bad_input(fmt::format("{}: images of {} channels; needed 1 (grey) or 3 (RGB)",
                                 shown(path), format.channels));
  }
  auto set = read_pixel_csv(path, format);
  if (!set) {
    return set.error();
  }
  return std::unique_ptr<Source>(
      std::make_unique<PixelCsvSource>(std::move(*set), shown(path)));
}

}  // namespace halfwatt

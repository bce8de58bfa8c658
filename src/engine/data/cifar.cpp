#include "engine/data/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/data/source.h"
#include "engine/formats/file.h"
#include "engine/formats/quoted.h"

namespace halfwatt {

// https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
const CifarLayout kCifar10{"CIFAR-10", 1, 10, 0, "batches.meta.txt"};
const CifarLayout kCifar100{"CIFAR-100", 2, 100, 20, "fine_label_names.txt"};

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlane = 1024;  // 32 x 32
constexpr std::int64_t kSide = 32;

struct CifarFile {
  const char* name;
  std::size_t records;  ///< as published
};

std::vector<CifarFile> files_of(const CifarLayout& layout, CifarPart part) {
  if (&layout == &kCifar100) {
    return part == CifarPart::train ? std::vector<CifarFile>{{"train.bin", 50'000}}
                                    : std::vector<CifarFile>{{"test.bin", 10'000}};
  }
  if (part == CifarPart::test) {
    return {{"test_batch.bin", 10'000}};
  }
  return {{"data_batch_1.bin", 10'000},
          {"data_batch_2.bin", 10'000},
          {"data_batch_3.bin", 10'000},
          {"data_batch_4.bin", 10'000},
          {"data_batch_5.bin", 10'000}};
}

// CIFAR's largest file has 154 MB; nothing near this is one.
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

template <class T>
Result<std::vector<T>> read_whole(const fs::path& path) {
  const auto file = InputFile::open(path);
  if (!file) {
    return file.error();
  }
  return file->whole<T>(kMostBytes);
}

class CifarSource final : public Source {
 public:
  static Result<std::unique_ptr<Source>> open(const fs::path& folder,
                                              const CifarLayout& layout,
                                              CifarPart part) {
    std::unique_ptr<CifarSource> source(new CifarSource(layout));
    const fs::path names = folder / layout.names;
    const auto text = read_whole<char>(names);
    if (!text) {
      return text.error();
    }
    auto classes = cifar_names({text->data(), text->size()}, shown(names), layout);
    if (!classes) {
      return classes.error();
    }
    source->classes_ = ClassMap(std::move(*classes));
    for (const CifarFile& file : files_of(layout, part)) {
      if (auto added = source->add(folder / file.name, file.records); !added) {
        return added.error();
      }
    }
    return std::unique_ptr<Source>(std::move(source));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  const ClassMap& classes() const override { return classes_; }
  std::int64_t label(std::int64_t place) const override { return labels_.at(index(place)); }
  std::string name(std::int64_t place) const override {
    const auto [part, record] = find(place);
    return fmt::format("{} record {}", part->name, record);
  }
  Result<Image> read(std::int64_t place) const override {
    const auto [part, record] = find(place);
    const std::size_t start = record * layout_->record_bytes() + layout_->label_bytes;
    return cifar_image(std::span(part->bytes).subspan(start, 3 * kPlane));
  }
  std::vector<std::string> remarks() const override { return remarks_; }

 private:
  struct Part {
    std::string name;
    std::size_t first;  ///< the place of its first image
    std::vector<std::uint8_t> bytes;
  };

  explicit CifarSource(const CifarLayout& layout) : layout_(&layout) {}

  static std::size_t index(std::int64_t place) { return static_cast<std::size_t>(place); }

  std::pair<const Part*, std::size_t> find(std::int64_t place) const {
    HALFWATT_CHECK(place >= 0 && place < size(), "a place of this source");
    auto part = parts_.end();
    do {
      --part;
    } while (part->first > index(place));
    return {&*part, index(place) - part->first};
  }

  Result<void> add(const fs::path& path, std::size_t published) {
    auto bytes = read_whole<std::uint8_t>(path);
    if (!bytes) {
      return bytes.error();
    }
    const auto labels = cifar_labels(*bytes, shown(path), *layout_);
    if (!labels) {
      return labels.error();
    }
    if (labels->size() != published) {
      remarks_.push_back(fmt::format("{}: {} images; the published file has {}", shown(path),
                                     labels->size(), published));
    }
    parts_.push_back({shown(path), labels_.size(), std::move(*bytes)});
    labels_.insert(labels_.end(), labels->begin(), labels->end());
    return {};
  }

  const CifarLayout* layout_;
  ClassMap classes_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> remarks_;
};

}  // namespace

const CifarLayout* cifar_in(const fs::path& folder) {
  std::error_code ignored;
  for (const CifarLayout* layout : {&kCifar10, &kCifar100}) {
    for (const CifarPart part : {CifarPart::train, CifarPart::test}) {
      for (const CifarFile& file : files_of(*layout, part)) {
        if (fs::is_regular_file(folder / file.name, ignored)) {
          return layout;
        }
      }
    }
  }
  return nullptr;
}

Result<std::vector<std::int64_t>> cifar_labels(std::span<const std::uint8_t> bytes,
                                               const std::string& name,
                                               const CifarLayout& layout) {
  const std::size_t each = layout.record_bytes();
  if (bytes.empty() || bytes.size() % each != 0) {
    const std::size_t whole = bytes.size() / each;
    return bad_input(
        fmt::format("{}: record {} at byte {} has {} bytes; {} needs {} a record, and no rest",
                    name, whole, whole * each, bytes.size() - whole * each, layout.name, each));
  }
  std::vector<std::int64_t> labels;
  labels.reserve(bytes.size() / each);
  for (std::size_t at = 0; at < bytes.size(); at += each) {
    for (std::size_t of = 0; of < layout.label_bytes; ++of) {
      const bool last = of + 1 == layout.label_bytes;
      const std::int64_t classes = last ? layout.classes : layout.superclasses;
      if (bytes[at + of] >= classes) {
        return bad_input(fmt::format("{}: record {} at byte {}: {} {}; {} needs 0 to {}", name,
                                     at / each, at + of, last ? "label" : "coarse label",
                                     bytes[at + of], layout.name, classes - 1));
      }
    }
    labels.push_back(bytes[at + layout.label_bytes - 1]);
  }
  return labels;
}

Image cifar_image(std::span<const std::uint8_t> pixels) {
  HALFWATT_CHECK(pixels.size() == 3 * kPlane, "the pixels of one record");
  Image image{kSide, kSide, std::vector<std::uint8_t>(3 * kPlane)};
  for (std::size_t at = 0; at < kPlane; ++at) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      image.pixels[3 * at + channel] = pixels[channel * kPlane + at];
    }
  }
  return image;
}

Result<std::vector<std::string>> cifar_names(std::string_view text,
                                             const std::string& name,
                                             const CifarLayout& layout) {
  std::vector<std::string> names;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? "" : text.substr(end + 1);
    if (!line.empty() && line.back() == '\r') {
      line.remove_suffix(1);
    }
    if (line.empty()) {  // as at the end of the published batches.meta.txt
      continue;
    }
    if (std::ranges::find(names, line) != names.end()) {
      return bad_input(
          fmt::format("{}:{}: class {} again; needed once", name, number, quoted_name(line)));
    }
    names.emplace_back(line);
  }
  if (std::ssize(names) != layout.classes) {
    return bad_input(fmt::format("{}: names {} classes; {} needs {}", name, names.size(),
                                 layout.name, layout.classes));
  }
  return names;
}

Result<std::unique_ptr<Source>> open_cifar(const fs::path& folder, CifarPart part) {
  const CifarLayout* layout = cifar_in(folder);
  if (layout == nullptr) {
    return bad_input(
        fmt::format("{}: no file of CIFAR in it; needed data_batch_1.bin to 5 and "
                    "test_batch.bin, or train.bin and test.bin",
                    shown(folder)));
  }
  return CifarSource::open(folder, *layout, part);
}

}  // namespace halfwatt

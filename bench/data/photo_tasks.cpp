#include "data/photo_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/bare_jpeg.h"
#include "data/rate.h"
#include "engine/data/augment.h"
#include "engine/data/decode.h"
#include "engine/data/preprocess.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kSide = 224;
constexpr double kSeconds = 0.25;
constexpr double kTurn = 0.05;
constexpr int kRounds = 41;
constexpr double kLeast = 0.5;

/// What the loader's threads do for a training and an evaluation of vit_*_224.
class PhotoTasks {
 public:
  void eighth(std::span<const std::byte> jpeg) { decode_eighth(jpeg); }
  void decode(std::span<const std::byte> jpeg) { decoded(jpeg, {}); }
  void evaluate(std::span<const std::byte> jpeg) { evaluation_pixels(jpeg); }
  void evaluate_f32(std::span<const std::byte> jpeg) { write(evaluation_pixels(jpeg), false); }
  void train(std::span<const std::byte> jpeg) { training_pixels(jpeg); }
  void train_f32(std::span<const std::byte> jpeg) {
    const Image image = training_pixels(jpeg);
    write(image, view_.flip);
  }

 private:
  Image evaluation_pixels(std::span<const std::byte> jpeg) {
    return framed(decoded(jpeg,
                          [this](std::int64_t width, std::int64_t height) {
                            return evaluation_part(width, height, how_);
                          }),
                  kSide);
  }
  Image training_pixels(std::span<const std::byte> jpeg) {
    return decoded(jpeg, [this](std::int64_t width, std::int64_t height) {
      view_ = training_view({}, width, height, {1, 0, sample_++});
      return part_of(view_, kSide);
    });
  }
  static Image decoded(std::span<const std::byte> jpeg, const PartOf& part) {
    auto image = decode_image(jpeg, "photo", {}, part);
    HALFWATT_CHECK(image, "photos are whole");
    return std::move(*image);
  }
  void write(const Image& image, bool flip) {
    to_tensor(image, how_.normalisation, flip, std::as_writable_bytes(std::span(tensor_)),
              DType::f32);
  }

  Preprocessing how_ = preprocessing_of("vit_base_patch16_224", kSide);
  std::vector<float> tensor_ = std::vector<float>(kSide * kSide * 3);
  TrainingView view_{};
  std::uint64_t sample_ = 0;
};

struct Task {
  std::string_view name, what;
  void (PhotoTasks::*run)(std::span<const std::byte>);
  bool held;  ///< against half of the first one's rate
};
constexpr Task kTasks[] = {
    {"photo_eighth", "libjpeg alone, at an eighth of the size", &PhotoTasks::eighth, false},
    {"photo_decode", "every pixel", &PhotoTasks::decode, false},
    {"photo_evaluate", "to vit_*_224's evaluation view", &PhotoTasks::evaluate, true},
    {"photo_train", "to a random crop of 224x224", &PhotoTasks::train, true},
    {"photo_evaluate_f32", "the same, normalised", &PhotoTasks::evaluate_f32, false},
    {"photo_train_f32", "the same, flipped, normalised", &PhotoTasks::train_f32, false},
};

std::vector<std::string> read_all(std::span<const std::string_view> paths) {
  std::vector<std::string> files;
  for (const std::string_view path : paths) {
    std::ifstream in(std::string(path), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

double photos_a_second(PhotoTasks& tasks,
                       const Task& task,
                       double seconds,
                       const std::vector<std::string>& files) {
  return rate(seconds, static_cast<int>(files.size()), [&](int at) {
    const std::string& file = files[static_cast<std::size_t>(at) % files.size()];
    (tasks.*task.run)(std::as_bytes(std::span(file)));
  });
}

std::string spread(std::vector<double> values, int digits) {
  std::sort(values.begin(), values.end());
  return fmt::format("{:7.{}f} ({:.{}f} to {:.{}f})", values[values.size() / 2], digits,
                     values.front(), digits, values.back(), digits);
}

}  // namespace

std::optional<double> photos_a_second(std::string_view task,
                                      std::span<const std::string_view> paths) {
  PhotoTasks tasks;
  for (const Task& each : kTasks) {
    if (each.name == task) {
      return photos_a_second(tasks, each, kSeconds, read_all(paths));
    }
  }
  return std::nullopt;
}

int compare_photos(std::span<const std::string_view> paths) {
  const std::vector<std::string> files = read_all(paths);
  PhotoTasks tasks;
  std::array<std::vector<double>, std::size(kTasks)> rates, shares;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t at = 0; at < std::size(kTasks); ++at) {
      rates[at].push_back(photos_a_second(tasks, kTasks[at], kTurn, files));
      shares[at].push_back(rates[at].back() / rates[0].back());
    }
  }
  bool good = true;
  for (std::size_t at = 0; at < std::size(kTasks); ++at) {
    fmt::print("{:19}{} photos/s, {} of photo_eighth  {}\n", kTasks[at].name,
               spread(rates[at], 0), spread(shares[at], 2), kTasks[at].what);
    std::nth_element(shares[at].begin(), shares[at].begin() + kRounds / 2, shares[at].end());
    good &= !kTasks[at].held || shares[at][kRounds / 2] >= kLeast;
  }
  fmt::print("{}: at least {} of photo_eighth\n", good ? "reached" : "MISSED", kLeast);
  return good ? 0 : 1;
}

}  // namespace halfwatt

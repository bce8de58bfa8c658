// bench_data [TASK RESAMPLER]: pictures a second, on one thread, that become pixels and
// tensors; of every task and resampler, or only the number of one. Pictures are 500x375, as
// ImageNet's are on average, and decoded already.
// bench_data photos JPEG... | PHOTO_TASK JPEG...: the same from the bytes of JPEGs, of every
// such task beside libjpeg alone, in turns, or only the number of one.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "data/photo_tasks.h"
#include "data/rate.h"
#include "engine/data/augment.h"
#include "engine/data/preprocess.h"

namespace halfwatt {
namespace {

constexpr std::int64_t kSide = 224;
constexpr double kSeconds = 0.25;

class Tasks {
 public:
  Tasks()
      : image_{500, 375, std::vector<std::uint8_t>(std::size_t{500} * 375 * 3)},
        tensor_(kSide * kSide * 3) {
    Rng rng(1);
    std::generate(image_.pixels.begin(), image_.pixels.end(),
                  [&] { return static_cast<std::uint8_t>(rng.next() >> 56); });
  }

  void resize(const Resampler& with) {
    made_ = resize_part(image_, whole(Resizing{whole(image_), kSide, kSide, Filter::bicubic}),
                        with);
  }
  // What `evaluation_view` does at crop 0.9: the short side to 248, the middle 224 of both.
  void evaluate(const Resampler& with) {
    made_ = resize_part(
        image_, {{whole(image_), 330, 248, Filter::bicubic}, {53, 12, kSide, kSide}}, with);
    write(false);
  }
  void train(const Resampler& with) {
    const TrainingView view = training_view({}, image_.width, image_.height, {1, 0, sample_++});
    made_ = resize_part(image_, part_of(view, kSide), with);
    write(view.flip);
  }
  void tensor(const Resampler&) {
    made_.width = made_.height = kSide;
    made_.pixels.resize(tensor_.size());
    write(false);
  }

 private:
  void write(bool flip) {
    to_tensor(made_, kInceptionNormalisation, flip, std::as_writable_bytes(std::span(tensor_)),
              DType::f32);
  }

  Image image_, made_;
  std::vector<float> tensor_;
  std::uint64_t sample_ = 0;
};

struct Task {
  std::string_view name, what;
  void (Tasks::*run)(const Resampler&);
};
constexpr Task kTasks[] = {
    {"resize", "500x375 to 224x224, bicubic", &Tasks::resize},
    {"evaluate", "vit_*_224's evaluation view to f32", &Tasks::evaluate},
    {"train", "random crop, bilinear or bicubic, flip, to f32", &Tasks::train},
    {"tensor", "224x224 to f32 alone", &Tasks::tensor},
};

int run(const std::vector<std::string_view>& wanted) {
  Tasks tasks;
  bool any = false;
  for (const Task& task : kTasks) {
    for (auto with = resamplers(); *with != nullptr; ++with) {
      if (wanted.empty()) {
        fmt::print("{:9} {:12} {:8.0f} pictures/s  {}\n", task.name, (*with)->name,
                   rate(kSeconds, 1, [&](int) { (tasks.*task.run)(**with); }), task.what);
      } else if (wanted[0] == task.name && wanted[1] == (*with)->name) {
        fmt::print("{:.1f}\n", rate(kSeconds, 1, [&](int) { (tasks.*task.run)(**with); }));
      } else {
        continue;
      }
      any = true;
      std::fflush(stdout);
    }
  }
  return any ? 0 : 2;
}

}  // namespace
}  // namespace halfwatt

int main(int count, char** words) {
  const std::vector<std::string_view> wanted(words + 1, words + count);
  if (count > 2) {
    const auto paths = std::span(wanted).subspan(1);
    if (wanted[0] == "photos") {
      return halfwatt::compare_photos(paths);
    }
    if (const auto photos = halfwatt::photos_a_second(wanted[0], paths)) {
      fmt::print("{:.1f}\n", *photos);
      return 0;
    }
  }
  if (count != 1 && count != 3) {
    fmt::print(stderr,
               "usage: bench_data [TASK RESAMPLER | photos JPEG... | PHOTO_TASK JPEG...]\n");
    return 2;
  }
  return halfwatt::run(wanted);
}

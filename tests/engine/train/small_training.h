#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/data/image_set.h"
#include "engine/train/trainer.h"

namespace halfwatt {

/// Digits and a model for them that takes a step in a millisecond.
inline ImageSet digits() {
  auto set = read_pixel_csv("data/digits.csv.gz", {});
  EXPECT_TRUE(set) << set.error().message;
  return std::move(*set);
}

inline TrainRecipe small_recipe(std::string_view mode) {
  TrainRecipe recipe;
  recipe.model = *vit_named("vit_micro_patch2_8");
  recipe.model.channels = 1;
  recipe.model.classes = 10;
  recipe.precision = *precision_named(mode);
  recipe.batch = 16;
  return recipe;
}

/// `count` images from place `first` on.
inline ImageSet some(const ImageSet& set, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> places;
  for (std::int64_t at = first; at < first + count; ++at) {
    places.push_back(at % set.size());
  }
  return set.at(places);
}

/// Pictures of 8x8 for a recipe that normalises them, and the same as numbers.
struct SmallPictures {
  SmallPictures(std::int64_t count, const Normalisation& by) {
    const Shape shape{count, 3, 8, 8};
    bytes.images = Tensor(TensorType{DType::u8, shape});
    numbers.images = Tensor(TensorType{DType::f32, shape});
    const auto values = bytes.images.as<std::uint8_t>();
    Rng rng(5);
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::size_t channel = at / 64 % 3;
      values[at] = static_cast<std::uint8_t>(rng.next());
      numbers.images.as<float>()[at] =
          normalised(values[at], by.mean[channel], by.deviation[channel]);
    }
    for (std::int64_t at = 0; at < count; ++at) {
      bytes.labels.push_back(at % 10);
    }
    numbers.labels = bytes.labels;
    bytes.classes = numbers.classes = 10;
  }
  ImageSet bytes;
  ImageSet numbers;
};

/// A training on a backend of its own.
struct SmallTraining {
  explicit SmallTraining(const TrainRecipe& recipe, int threads = 0)
      : backend(std::move(*open_cpu({"cpu", threads}))) {
    auto opened = Trainer::open(recipe, *backend);
    EXPECT_TRUE(opened) << opened.error().message;
    trainer = std::move(*opened);
  }
  /// Steps `from` (from 0) to before `to`, on images that follow from their number.
  void steps(const ImageSet& images, int from, int to) {
    const std::int64_t size = trainer->step_size();
    for (int step = from; step < to; ++step) {
      const auto report = trainer->step(some(images, step * size, size));
      ASSERT_TRUE(report) << report.error().message;
      losses.push_back(report->loss);
      states.push_back(report->state);
    }
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Trainer> trainer;
  std::vector<double> losses;
  std::vector<NumericalState> states;
};

/// The names of states that differ in any bit; empty if both trainings are the same.
inline std::string differing(Trainer& one, Trainer& other) {
  if (one.states().names() != other.states().names()) {
    return "names";
  }
  std::string all;
  for (const std::string& name : one.states().names()) {
    const Tensor a = one.states().save(name);
    const Tensor b = other.states().save(name);
    if (!std::equal(a.view().bytes().begin(), a.view().bytes().end(),
                    b.view().bytes().begin())) {
      all += name + " ";
    }
  }
  return all;
}

}  // namespace halfwatt

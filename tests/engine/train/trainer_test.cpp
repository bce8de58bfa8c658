#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend/cpu/cpu_backend.h"

namespace halfwatt {
namespace {

ImageSet digits() {
  auto set = read_pixel_csv("data/digits.csv.gz", {});
  EXPECT_TRUE(set) << set.error().message;
  return std::move(*set);
}

TrainRecipe recipe(std::string_view mode) {
  TrainRecipe all;
  all.model = *vit_named("vit_micro_patch2_8");
  all.model.channels = 1;
  all.model.classes = 10;
  all.precision = *precision_named(mode);
  all.optimizer.rate = 2e-3;
  all.optimizer.schedule = Optimizer::Schedule::cosine;
  all.optimizer.warmup = 50;
  all.batch = 64;
  const auto env = [](const char* n, double d) {
    const char* v = std::getenv(n);
    return v ? std::atof(v) : d;
  };
  all.model.width = (int)env("WIDTH", 32);
  all.model.hidden = 4 * all.model.width;
  all.model.depth = (int)env("DEPTH", 2);
  all.model.heads = (int)env("HEADS", 2);
  all.optimizer.rate = env("RATE", 2e-3);
  all.model.drop_path = env("DP", 0);
  all.smoothing = env("SM", 0);
  all.batch = (int)env("BATCH", 64);
  if (env("POOL", 0) > 0) all.model.pool = VitConfig::Pool::mean;
  all.optimizer.decay = env("WD", 0.05);
  all.optimizer.beta2 = env("B2", 0.999);
  return all;
}

double accuracy(std::string_view mode, std::uint64_t seed, int epochs) {
  auto backend = open_cpu();
  const ImageSet all = digits();
  const Split split = stratified(all, 0.2, 20261130);
  TrainRecipe how = recipe(mode);
  how.seed = seed;
  const std::int64_t steps = static_cast<std::int64_t>(split.train.size()) / how.batch;
  how.optimizer.total = steps * epochs;
  auto trainer = Trainer::open(how, **backend);
  EXPECT_TRUE(trainer) << trainer.error().message;
  StepReport last;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto order = shuffled(static_cast<std::int64_t>(split.train.size()), seed, epoch);
    for (std::int64_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> places;
      for (std::int64_t at = step * how.batch; at < (step + 1) * how.batch; ++at) {
        places.push_back(
            split.train[static_cast<std::size_t>(order[static_cast<std::size_t>(at)])]);
      }
      ImageSet batch = all.at(places);
      const auto report = (*trainer)->step(batch);
      EXPECT_TRUE(report);
      last = *report;
    }
  }
  EXPECT_EQ(last.state, NumericalState::live) << last.reason;
  const auto evaluation = (*trainer)->evaluate(all.at(split.held_out));
  EXPECT_EQ(evaluation->images, static_cast<std::int64_t>(split.held_out.size()));
  return static_cast<double>(evaluation->right) / static_cast<double>(evaluation->images);
}

TEST(Trainer, learns_to_read_digits) {
  const char* epochs = std::getenv("EPOCHS");
  const char* mode = std::getenv("MODE");
  const double share = accuracy(
      mode ? mode : "fp32", std::getenv("SEED") ? (unsigned)std::atoi(std::getenv("SEED")) : 1,
      epochs ? std::atoi(epochs) : 10);
  std::printf("%.4f\n", share);
  EXPECT_GT(share, 0.9);
}

}  // namespace
}  // namespace halfwatt

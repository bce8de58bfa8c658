// A model that learns on from weights, as timm (fine_tuning.py) has it.

#include "engine/models/fine_tuning.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "engine/formats/safetensors.h"

namespace halfwatt {
namespace {

TEST(FineTuning, gives_every_parameter_the_share_of_the_rate_that_timm_gives_it) {
  std::ifstream in("tests/golden/engine/layer_decay.txt");
  std::map<std::string, double, std::less<>> rates;
  std::size_t seen = 0;
  int models = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("vit_")) {
      EXPECT_EQ(seen, rates.size());
      VitConfig config = *vit_named("vit_tiny_patch16_224");
      config.pool =
          line.find("avg") == line.npos ? VitConfig::Pool::token : VitConfig::Pool::mean;
      rates = layer_rates(config, 0.75);
      seen = 0;
      ++models;
    } else if (!line.empty() && line[0] != '#') {
      std::istringstream words(line);
      std::string name;
      double share = 0;
      words >> name >> share;
      ASSERT_TRUE(rates.count(name) > 0 || name.starts_with("norm.")) << name;
      EXPECT_NEAR(rates.count(name) > 0 ? rates.at(name) : share, share, 1e-15) << name;
      seen += rates.count(name);
    }
  }
  EXPECT_EQ(seen, rates.size());
  EXPECT_EQ(models, 2);
}

TEST(FineTuning, resamples_positions_to_another_image_size_as_timm_does) {
  const auto file = SafetensorsFile::open("tests/golden/engine/positions.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  int cases = 0;
  for (const StoredTensor& each : file->header().tensors) {
    const std::size_t slash = each.name.find("/to");
    if (slash == each.name.npos) {
      continue;
    }
    const Tensor from = *file->read(*file->find(each.name.substr(0, slash) + "/from"));
    const Tensor golden = *file->read(each);
    const Tensor ours = resampled_positions(from.view(), side_of(golden.shape()));
    ASSERT_EQ(ours.type(), golden.type()) << each.name;
    for (std::size_t at = 0; at < ours.as<float>().size(); ++at) {
      // Where the kernel lies is known to an ulp of 24 in f32, 2e-6; numbers are up to 4.
      ASSERT_NEAR(ours.as<float>()[at], golden.as<float>()[at], 1e-5) << each.name << " " << at;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 7);
}

TEST(FineTuning, keeps_the_class_token_and_a_grid_of_the_same_size) {
  std::vector<float> values;
  for (int at = 0; at < 10 * 2; ++at) {
    values.push_back(static_cast<float>(at) * 0.25F);
  }
  const Tensor same = Tensor::of<float>(DType::f32, Shape{1, 10, 2}, values);
  const Tensor kept = resampled_positions(same.view(), 3);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), kept.as<float>().begin()));
  const Tensor wider = resampled_positions(same.view(), 5);
  EXPECT_EQ(wider.as<float>()[0], values[0]);
  EXPECT_EQ(wider.as<float>()[1], values[1]);
}

TEST(FineTuning, sees_whether_positions_are_those_of_a_square) {
  EXPECT_EQ(side_of(Shape{1, 197, 192}), 14);
  EXPECT_EQ(side_of(Shape{1, 2, 192}), 1);
  EXPECT_EQ(side_of(Shape{1, 196, 192}), 0);
  EXPECT_EQ(side_of(Shape{1, 1, 192}), 0);
  EXPECT_EQ(side_of(Shape{197, 192}), 0);
}

}  // namespace
}  // namespace halfwatt

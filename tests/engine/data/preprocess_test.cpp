// Evaluation views and tensors against timm (tests/golden/data/transforms.json and
// normalised.safetensors).

#include "engine/data/preprocess.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/data/pictures.h"
#include "engine/formats/safetensors.h"
#include "engine/tensor/convert.h"
#include "engine/tensor/keyed_random.h"

namespace halfwatt {
namespace {

nlohmann::json golden(const std::string& list) {
  std::ifstream file("tests/golden/data/transforms.json");
  return nlohmann::json::parse(file).at(list);
}

Filter filter_of(const nlohmann::json& row) {
  return row.at("filter") == "bicubic" ? Filter::bicubic : Filter::bilinear;
}

Image picture_of(const nlohmann::json& row) {
  return drawn_picture(row.at("seed"), row.at("width"), row.at("height"));
}

std::string_view bytes_of(const Image& image) {
  return {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()};
}

TEST(Preprocessing, of_every_vit_is_what_timm_does_for_its_default_weights) {
  const auto rows = golden("models");
  EXPECT_EQ(rows.size(), 14U);
  for (const auto& row : rows) {
    const Normalisation normalisation = {row.at("mean").get<std::array<float, 3>>(),
                                         row.at("std").get<std::array<float, 3>>()};
    EXPECT_EQ(row.at("mode"), "center");
    EXPECT_EQ(preprocessing_of(row.at("model").get<std::string>(), row.at("size")),
              (Preprocessing{row.at("size"), row.at("crop"), filter_of(row), normalisation,
                             PassOrder::rows}))
        << row.at("model");
  }
}
TEST(Preprocessing, of_a_micro_size_sees_all_of_the_picture) {
  EXPECT_EQ(
      preprocessing_of("vit_micro_patch4_16", 16),
      (Preprocessing{16, 1.0, Filter::bicubic, kInceptionNormalisation, PassOrder::rows}));
}

TEST(EvaluationView, has_the_pixels_of_timms_evaluation_transform) {
  const auto rows = golden("views");
  EXPECT_EQ(rows.size(), 65U);
  for (const auto& row : rows) {
    Preprocessing how;
    how.size = row.at("size");
    how.crop = row.at("crop");
    how.filter = filter_of(row);
    const Image view = evaluation_view(picture_of(row), how);
    EXPECT_EQ(view.width, how.size);
    EXPECT_EQ(view.height, how.size);
    const auto hash = std::stoull(row.at("fnv1a").get<std::string>(), nullptr, 16);
    EXPECT_EQ(fnv1a(bytes_of(view)), hash) << row;
  }
}
TEST(EvaluationView, is_the_picture_where_that_has_the_wanted_size) {
  const Image image = drawn_picture(5, 224, 224);
  EXPECT_EQ(evaluation_view(image, preprocessing_of("vit_micro_patch16_224", 224)).pixels,
            image.pixels);
}

template <DType dtype>
std::vector<Stored<dtype>> tensor_of(const Image& image, const Normalisation& by, bool flip) {
  std::vector<Stored<dtype>> elements(image.pixels.size());
  to_tensor(image, by, flip, std::as_writable_bytes(std::span(elements)), dtype);
  return elements;
}

Image every_byte() {
  std::vector<int> ramp(256);
  for (std::size_t at = 0; at < ramp.size(); ++at) {
    ramp[at] = static_cast<int>(at);
  }
  return grey_row(ramp);
}

template <DType dtype>
void expect_timms_bits(const std::string& suffix) {
  const auto file = SafetensorsFile::open("tests/golden/data/normalised.safetensors");
  ASSERT_TRUE(file);
  for (const auto& [name, by] : {std::pair{"inception/", kInceptionNormalisation},
                                 std::pair{"imagenet/", kImagenetNormalisation}}) {
    const StoredTensor* const stored = file->find(name + suffix);
    ASSERT_NE(stored, nullptr);
    const auto wanted = file->read(*stored);
    ASSERT_TRUE(wanted);
    const auto made = tensor_of<dtype>(every_byte(), by, false);
    const auto bits = wanted->as<Stored<dtype>>();
    EXPECT_EQ(made, std::vector(bits.begin(), bits.end())) << name << suffix;
  }
}

TEST(ToTensor, makes_of_every_byte_the_bits_that_timm_makes) {
  expect_timms_bits<DType::f32>("float32");
  expect_timms_bits<DType::f16>("float16");
  expect_timms_bits<DType::bf16>("bfloat16");
}
TEST(ToTensor, puts_each_colour_in_a_plane_of_its_own_row_by_row) {
  const Image image = {2, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}};
  const auto made = tensor_of<DType::f32>(image, kInceptionNormalisation, false);
  EXPECT_EQ(made, (std::vector<float>{1, -1, -1, 1, -1, 1, -1, 1, -1, -1, 1, 1}));
}
TEST(ToTensor, mirrors_every_row) {
  const Image image = drawn_picture(9, 13, 5);
  Image mirrored = image;
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t x = 0; x < 13; ++x) {
      std::copy_n(image.pixels.data() + (row * 13 + x) * 3, 3,
                  mirrored.pixels.data() + (row * 13 + 12 - x) * 3);
    }
  }
  EXPECT_EQ(tensor_of<DType::f16>(image, kImagenetNormalisation, true),
            tensor_of<DType::f16>(mirrored, kImagenetNormalisation, false));
}
TEST(ToTensor, leaves_bytes_as_they_are_in_planes_and_mirrored) {
  const Image image = {2, 2, {255, 0, 1, 0, 254, 2, 7, 8, 253, 250, 251, 252}};
  std::array<std::uint8_t, 12> made{};
  to_tensor(image, kImagenetNormalisation, true, std::as_writable_bytes(std::span(made)),
            DType::u8);
  EXPECT_EQ(made,
            (std::array<std::uint8_t, 12>{0, 255, 250, 7, 254, 0, 251, 8, 2, 1, 252, 253}));
}
TEST(ToTensorDeathTest, refuses_memory_of_another_size_and_other_dtypes) {
  const Image image = drawn_picture(9, 4, 4);
  std::vector<std::byte> memory(4 * 4 * 3 * 4 + 1);
  EXPECT_DEATH(to_tensor(image, kImagenetNormalisation, false, memory, DType::f32),
               "memory for three numbers");
  EXPECT_DEATH(to_tensor(image, kImagenetNormalisation, false, memory, DType::i8),
               "f32, f16 or bf16");
}

}  // namespace
}  // namespace halfwatt

#include "engine/formats/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

// Made by the reference implementation: tests/golden/formats/make_reference.py.
constexpr const char* kReference = "tests/golden/formats/reference.safetensors";

template <class T>
std::vector<T> values(const SafetensorsFile& file, std::string_view name) {
  const StoredTensor* stored = file.find(name);
  EXPECT_NE(stored, nullptr) << name;
  const auto tensor = file.read(*stored);
  EXPECT_TRUE(tensor) << tensor.error().message;
  return {tensor->as<const T>().begin(), tensor->as<const T>().end()};
}

TEST(Safetensors, reads_what_the_reference_implementation_wrote) {
  const auto file = SafetensorsFile::open(kReference);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->header().tensors.size(), 13U);
  EXPECT_EQ(file->header().metadata.at("format"), "pt");
  EXPECT_EQ(text(file->find("blocks.0.norm.weight")->type), "f32 2x2");
  EXPECT_EQ(values<float>(*file, "blocks.0.norm.weight"),
            (std::vector<float>{1, -2.5F, 0.1F, 3e38F}));
  EXPECT_EQ(values<double>(*file, "scalar"), std::vector<double>{0.1});
  EXPECT_EQ(values<std::int64_t>(*file, "count"), std::vector{-(std::int64_t{1} << 62)});
  EXPECT_EQ(values<std::uint64_t>(*file, "big"), std::vector{~std::uint64_t{0}});
  EXPECT_EQ(values<std::int32_t>(*file, "ids"), (std::vector{-1, 7, 2147483647}));
  EXPECT_EQ(values<std::uint16_t>(*file, "half"), (std::vector<std::uint16_t>{0x3c00, 0x7bff}));
  EXPECT_EQ(values<std::uint16_t>(*file, "brain"),
            (std::vector<std::uint16_t>{0x3f80, 0x8000}));
  EXPECT_EQ(values<std::uint8_t>(*file, "e4m3"), (std::vector<std::uint8_t>{0x38, 0x7e}));
  EXPECT_EQ(values<std::uint8_t>(*file, "e5m2"), (std::vector<std::uint8_t>{0x3c, 0x7b}));
  EXPECT_EQ(values<std::uint8_t>(*file, "mask"), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(values<std::int8_t>(*file, "odd \"name\"\n\xc3\xa9"),
            std::vector<std::int8_t>{-128});
  EXPECT_EQ(text(file->find("none")->type), "f32 0x4");
  EXPECT_TRUE(values<float>(*file, "none").empty());
  EXPECT_EQ(file->find("nothing"), nullptr);
}

TEST(Safetensors, writes_what_the_reference_implementation_wrote_to_the_byte) {
  const auto file = SafetensorsFile::open(kReference);
  ASSERT_TRUE(file);
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const StoredTensor& each : file->header().tensors) {
    tensors.push_back(*file->read(each));
    named.push_back({each.name, tensors.back().view()});
  }
  std::reverse(named.begin(), named.end());  // the order is the writer's
  const Folder folder;
  ASSERT_TRUE(write_safetensors(folder.path("a"), named, file->header().metadata));
  EXPECT_EQ(read_file(folder.path("a")), read_file(kReference));
}

TEST(Safetensors, reads_tensors_that_lie_misaligned) {
  const std::string json = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  const std::string one("\0\0\x80\x3f", 4);
  const Folder folder;
  const auto path = folder.write(
      "a", static_cast<char>(json.size()) + std::string(7, '\0') + json + "x" + one);
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(values<float>(*file, "b"), std::vector<float>{1});
}

TEST(Safetensors, holds_no_tensors_where_there_are_none) {
  const Folder folder;
  ASSERT_TRUE(write_safetensors(folder.path("a"), {}));
  EXPECT_EQ(read_file(folder.path("a")), std::string("\x8\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(SafetensorsFile::open(folder.path("a"))->header().tensors.empty());
}

// A hole of 4 TiB on the disk; nullopt where the file system has no such files.
std::optional<std::filesystem::path> huge_file(const Folder& folder) {
  const std::string json = R"({"a":{"dtype":"U8","shape":[4398046511104],)"
                           R"("data_offsets":[0,4398046511104]}})";
  const auto path =
      folder.write("a", static_cast<char>(json.size()) + std::string(7, '\0') + json);
  std::error_code error;
  std::filesystem::resize_file(path, 8 + json.size() + (std::uint64_t{1} << 42U), error);
  return error ? std::nullopt : std::optional(path);
}

TEST(Safetensors, lists_a_file_larger_than_memory_without_reading_it) {
  const Folder folder;
  const auto path = huge_file(folder);
  if (!path) {
    GTEST_SKIP() << "no file of 4 TiB on this file system";
  }
  const auto file = SafetensorsFile::open(*path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("a")->type.bytes(), std::uint64_t{1} << 42U);
}

int read_with_little_memory(const std::filesystem::path& path) {
  const rlimit limit{rlim_t{1} << 32U, rlim_t{1} << 32U};
  ::setrlimit(RLIMIT_AS, &limit);
  const auto file = SafetensorsFile::open(path);
  const auto tensor = file->read(*file->find("a"));
  return !tensor && tensor.error().message.ends_with(
                        R"(: tensor "a": 4398046511104 bytes do not fit into memory)")
             ? 0
             : 1;
}

TEST(SafetensorsDeathTest, says_which_tensor_does_not_fit_into_memory) {
  const Folder folder;
  const auto path = huge_file(folder);
  if (!path) {
    GTEST_SKIP() << "no file of 4 TiB on this file system";
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is more than the limit";
#endif
  EXPECT_EXIT(std::exit(read_with_little_memory(*path)), ::testing::ExitedWithCode(0), "");
}

TEST(Safetensors, names_the_file_that_it_refuses) {
  const Folder folder;
  const auto says = [](const std::filesystem::path& path) {
    const auto file = SafetensorsFile::open(path);
    return file ? "nothing" : file.error().message;
  };
  const auto cut = folder.write("cut", read_file(kReference).substr(0, 300));
  EXPECT_NE(says(cut).find(cut.string() + ": ends in its header"), std::string::npos);
  const auto whole = read_file(kReference);
  const auto shorter = folder.write("shorter", whole.substr(0, whole.size() - 1));
  EXPECT_NE(says(shorter).find(shorter.string() + ": the tensors end at byte"),
            std::string::npos);
  EXPECT_NE(says(folder.write("none", "")).find("has 0 bytes"), std::string::npos);
  EXPECT_NE(says(folder.path("missing")).find("No such file"), std::string::npos);
}

TEST(Safetensors, leaves_the_old_file_when_it_refuses_to_write) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  const Tensor tensor(TensorType{DType::f32, Shape{2}});
  const NamedTensor twice[] = {{"x", tensor.view()}, {"x", tensor.view()}};
  const auto written = write_safetensors(path, twice);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message,
            "cannot write " + path.string() + R"(: tensor "x": there twice; needed once)");
  EXPECT_EQ(read_file(path), "old");
}

}  // namespace
}  // namespace halfwatt

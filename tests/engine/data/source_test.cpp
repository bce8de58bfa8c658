#include "engine/data/source.h"

#include <gtest/gtest.h>

#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

std::string refusal(const std::string& where) {
  const auto source = open_source(where, {});
  return source ? "" : source.error().message;
}

const std::string kKinds =
    "needed a folder with a folder of .jpg, .jpeg or .png files for each class, one with the "
    ".bin files of CIFAR, a .csv or .csv.gz of pixels, or synthetic:N";

TEST(Source, is_random_where_it_is_called_synthetic) {
  SourceOptions options;
  options.synthetic.side = 4;
  options.synthetic.classes = 2;
  const auto source = open_source("synthetic:12", options);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 12);
  EXPECT_EQ((*source)->name(3), "synthetic:12 image 3");
}

TEST(Source, needs_a_whole_number_behind_synthetic) {
  const std::string needed = ": needed a whole number of images behind synthetic:";
  EXPECT_EQ(refusal("synthetic:"), "\"synthetic:\"" + needed);
  EXPECT_EQ(refusal("synthetic:1e3"), "\"synthetic:1e3\"" + needed);
  EXPECT_EQ(refusal("synthetic:99999999999999999999"),
            "\"synthetic:99999999999999999999\"" + needed);
  EXPECT_EQ(refusal("synthetic:-5"), "synthetic: -5 images; needed 1 to 1000000000");
}

TEST(Source, is_pixels_where_a_file_is_named_csv) {
  const auto source = open_source("data/digits.csv.gz", {});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 1797);
}

TEST(Source, is_cifar_where_a_folder_has_its_files) {
  const Folder folder;
  const auto file = folder.write("test.bin", "");
  EXPECT_EQ(refusal(folder.path().string()), "cannot read " +
                                                 folder.path("fine_label_names.txt").string() +
                                                 ": No such file or directory");
}

TEST(Source, is_an_image_folder_otherwise) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("cat"));
  (void)folder.write("cat/a.jpg", "");
  const auto source = open_source(folder.path().string(), {});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->classes().names(), std::vector<std::string>{"cat"});
}

TEST(Source, says_what_could_have_been_there) {
  const Folder folder;
  EXPECT_EQ(refusal(folder.path("none").string()),
            folder.path("none").string() + ": No such file or directory; " + kKinds);
  EXPECT_EQ(refusal(folder.write("a.tar", "").string()),
            folder.path("a.tar").string() + ": is a file; " + kKinds);
  EXPECT_EQ(refusal(""), "\"\": No such file or directory; " + kKinds);
}

}  // namespace
}  // namespace halfwatt

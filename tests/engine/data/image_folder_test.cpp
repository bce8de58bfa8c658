#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "engine/data/ram_cache.h"
#include "engine/data/source.h"
#include "engine/formats/folder.h"
#include "support/pictures.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

// One white pixel.
const std::string kPng(
    "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\001"
    "\000\000\000\001\010\000\000\000\000\072\176\233\125\000\000\000\012\111\104\101"
    "\124\170\332\143\370\017\000\001\001\001\000\034\260\214\231\000\000\000\000\111"
    "\105\116\104\256\102\140\202",
    67);

class ImageFolderTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = kPng) const {
    fs::create_directories(folder.path(name).parent_path());
    (void)folder.write(name, text);
  }
  std::unique_ptr<Source> open(ClassOrder order = ClassOrder::bytes) const {
    auto source = open_image_folder(folder.path(), {order, {}});
    EXPECT_TRUE(source) << source.error().message;
    return std::move(*source);
  }
  /// Names relative to the folder, in the source's order.
  std::vector<std::string> names(const Source& source) const {
    std::vector<std::string> names;
    for (std::int64_t place = 0; place < source.size(); ++place) {
      names.push_back(fs::path(source.name(place)).lexically_relative(folder.path()).string());
    }
    return names;
  }
  std::string refusal() const {
    const auto source = open_image_folder(folder.path(), {});
    return source ? "" : source.error().message;
  }

  Folder folder;
};

using Names = std::vector<std::string>;

TEST_F(ImageFolderTest, sorts_classes_by_their_bytes_as_torchvision_does) {
  put("2/a.jpg");
  put("10/a.jpg");
  put("1/a.jpg");
  put("B/a.jpg");
  put("a/a.jpg");
  EXPECT_EQ(open()->classes().names(), (Names{"1", "10", "2", "B", "a"}));
}

TEST_F(ImageFolderTest, sorts_classes_as_numbers_when_it_is_told_to) {
  put("2/a.jpg");
  put("10/a.jpg");
  put("1/a.jpg");
  EXPECT_EQ(open(ClassOrder::natural)->classes().names(), (Names{"1", "2", "10"}));
}

// sorted(os.walk(...)) compares whole paths: '-' is before '/'.
TEST_F(ImageFolderTest, sorts_files_as_torchvision_does_folder_by_folder) {
  put("c/z.jpg");
  put("c/a/b.jpg");
  put("c/a/x/c.jpg");
  put("c/a-b/d.jpg");
  EXPECT_EQ(names(*open()), (Names{"c/z.jpg", "c/a/b.jpg", "c/a-b/d.jpg", "c/a/x/c.jpg"}));
}

TEST_F(ImageFolderTest, labels_images_by_the_folder_below_the_root) {
  put("cat/deep/er/1.jpg");
  put("dog/1.jpg");
  put("dog/2.png");
  const auto source = open();
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->label(0), 0);
  EXPECT_EQ(source->label(1), 1);
  EXPECT_EQ(source->label(2), 1);
}

TEST_F(ImageFolderTest, takes_jpg_jpeg_and_png_in_any_case_and_tells_what_else_there_is) {
  put("c/a.JPG");
  put("c/b.jpeg");
  put("c/c.Png");
  put("c/d.webp");
  put("c/jpg");
  const auto source = open();
  EXPECT_EQ(names(*source), (Names{"c/a.JPG", "c/b.jpeg", "c/c.Png"}));
  EXPECT_EQ(source->remarks(),
            Names{"2 files are left out, as they are not named .jpg, .jpeg or .png; the first "
                  "is " +
                  folder.path("c/d.webp").string()});
}

TEST_F(ImageFolderTest, leaves_out_folders_that_begin_with_a_dot_and_tells) {
  put(".ipynb_checkpoints/a.jpg");
  put("cat/a.jpg");
  put("cat/.thumbnails/a.jpg");
  const auto source = open();
  EXPECT_EQ(source->classes().names(), Names{"cat"});
  EXPECT_EQ(names(*source), Names{"cat/a.jpg"});
  EXPECT_EQ(source->remarks(), (Names{folder.path(".ipynb_checkpoints").string() +
                                          ": left out, as its name begins with a dot",
                                      folder.path("cat/.thumbnails").string() +
                                          ": left out, as its name begins with a dot"}));
}

TEST_F(ImageFolderTest, follows_links_but_not_in_circles) {
  put("cat/a.jpg");
  put("more/b.jpg");
  fs::create_directory_symlink("..", folder.path("cat/up"));
  fs::create_directory_symlink(".", folder.path("cat/self"));
  fs::create_directory_symlink("../more", folder.path("cat/more"));
  const auto source = open();
  EXPECT_EQ(names(*source), (Names{"cat/a.jpg", "cat/more/b.jpg", "more/b.jpg"}));
  const std::string why = ": not entered, as it leads to a folder that was entered before";
  EXPECT_EQ(source->remarks(), (Names{folder.path("cat/self").string() + why,
                                      folder.path("cat/up").string() + why}));
}

TEST_F(ImageFolderTest, names_a_class_without_an_image_and_keeps_its_label) {
  put("a/a.jpg");
  fs::create_directory(folder.path("b"));
  put("c/a.jpg");
  const auto source = open();
  EXPECT_EQ(source->label(1), 2);
  EXPECT_EQ(source->remarks(), Names{folder.path("b").string() + ": a class without an image"});
}

TEST_F(ImageFolderTest, refuses_a_folder_without_an_image) {
  fs::create_directory(folder.path("a"));
  EXPECT_EQ(refusal(),
            folder.path().string() +
                ": no image in it, in 1 folders of classes; needed CLASS/*.jpg, .jpeg or .png");
}

TEST_F(ImageFolderTest, says_that_images_lie_beside_the_classes) {
  put("1.jpg");
  EXPECT_EQ(refusal(), folder.path().string() +
                           ": no image in it, in 0 folders of classes (1 images lie beside "
                           "them); needed CLASS/*.jpg, .jpeg or .png");
}

TEST_F(ImageFolderTest, decodes_an_image) {
  put("a/a.png");
  const auto image = open()->read(0);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->width, 1);
  EXPECT_EQ(image->pixels, (std::vector<std::uint8_t>{255, 255, 255}));
}

TEST_F(ImageFolderTest, counts_the_images_that_were_turned_each_once) {
  const std::string jpeg = jpeg_of(drawn_image(9, 7));
  put("a/a.jpg", with_segment(jpeg, exif_segment(6)));
  put("a/b.jpg", with_segment(jpeg, exif_segment(1)));
  put("a/c.jpg", jpeg);
  put("a/d.jpg", with_segment(jpeg, exif_segment(2)));
  const auto source = open();
  EXPECT_EQ(source->turned(), 0) << "none was read yet";
  CacheRoom room(1'000'000);
  const auto cached = cached_in_ram(*source, room);
  ASSERT_TRUE(cached);
  for (const std::int64_t place : {0, 1, 2, 3, 0}) {
    EXPECT_TRUE((*cached)->read(place));
  }
  EXPECT_EQ(source->turned(), 2);
  EXPECT_EQ((*cached)->turned(), 2);
}

TEST_F(ImageFolderTest, does_not_turn_what_it_is_told_to_leave) {
  put("a/a.jpg", with_segment(jpeg_of(drawn_image(9, 7)), exif_segment(6)));
  ImageFolderOptions options;
  options.decode.apply_orientation = false;
  const auto source = open_image_folder(folder.path(), options);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->read(0)->width, 9);
  EXPECT_EQ((*source)->turned(), 0);
}

TEST_F(ImageFolderTest, names_an_image_that_cannot_be_read) {
  put("a/a.png");
  put("a/b.png", "no picture");
  fs::create_symlink("nowhere", folder.path("a/c.png"));
  const auto source = open();
  fs::remove(folder.path("a/a.png"));
  const auto gone = source->read(0);
  const auto broken = source->read(1);
  const auto dangling = source->read(2);
  ASSERT_FALSE(gone);
  ASSERT_FALSE(broken);
  ASSERT_FALSE(dangling);
  EXPECT_EQ(gone.error().message,
            "cannot read " + folder.path("a/a.png").string() + ": No such file or directory");
  EXPECT_TRUE(broken.error().message.starts_with(folder.path("a/b.png").string() + ": "))
      << broken.error().message;
  EXPECT_EQ(dangling.error().message,
            "cannot read " + folder.path("a/c.png").string() + ": No such file or directory");
}

TEST_F(ImageFolderTest, names_no_control_character_to_a_terminal) {
  put("a/x\x1b[31m.png");
  EXPECT_EQ(open()->name(0), "\"" + folder.path("a/x").string() + R"(\u001b[31m.png")");
}

}  // namespace
}  // namespace halfwatt

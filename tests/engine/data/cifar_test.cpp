#include "engine/data/cifar.h"

#include <gtest/gtest.h>

#include "engine/data/source.h"
#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

const std::string kPixels = std::string(1024, '\x01') + std::string(1024, '\x02') +
                            std::string(1022, '\x03') + "\x04\x05";

std::string names(int count) {
  std::string text;
  for (int at = 0; at < count; ++at) {
    text += "name" + std::to_string(at) + "\n";
  }
  return text + "\n";  // the published batches.meta.txt ends with an empty line
}

std::string record(const std::string& labels) { return labels + kPixels; }

class Cifar10 : public testing::Test {
 protected:
  Cifar10() {
    (void)folder.write("batches.meta.txt", names(10));
    for (int at = 1; at <= 5; ++at) {
      put(at, record(std::string(1, static_cast<char>(at))) + record("\x09"));
    }
  }
  void put(int at, const std::string& bytes) const {
    (void)folder.write("data_batch_" + std::to_string(at) + ".bin", bytes);
  }
  std::string refusal() const {
    const auto source = open_cifar(folder.path(), CifarPart::train);
    return source ? "" : source.error().message;
  }
  std::string at(const std::string& file) const { return folder.path(file).string(); }

  Folder folder;
};

TEST_F(Cifar10, reads_labels_names_and_pixels_in_the_order_of_its_files) {
  const auto source = open_cifar(folder.path(), CifarPart::train);
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->size(), 10);
  EXPECT_EQ((*source)->classes().name(9), "name9");
  EXPECT_EQ((*source)->label(0), 1);
  EXPECT_EQ((*source)->label(1), 9);
  EXPECT_EQ((*source)->label(8), 5);
  EXPECT_EQ((*source)->name(9), at("data_batch_5.bin") + " record 1");
  const auto image = (*source)->read(7);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width, 32);
  EXPECT_EQ(image->height, 32);
  ASSERT_EQ(image->pixels.size(), 3072U);
  EXPECT_EQ(image->pixels[0], 1);
  EXPECT_EQ(image->pixels[1], 2);
  EXPECT_EQ(image->pixels[2], 3);
  EXPECT_EQ(image->pixels[3071], 5);
}

TEST_F(Cifar10, tells_that_a_file_is_not_as_long_as_the_published_one) {
  const auto source = open_cifar(folder.path(), CifarPart::train);
  ASSERT_TRUE(source);
  ASSERT_EQ((*source)->remarks().size(), 5U);
  EXPECT_EQ((*source)->remarks()[0],
            at("data_batch_1.bin") + ": 2 images; the published file has 10000");
}

TEST_F(Cifar10, reads_the_published_length_without_a_remark) {
  std::string bytes;
  for (int at = 0; at < 10'000; ++at) {
    bytes += record("\x03");
  }
  ASSERT_EQ(bytes.size(), 30'730'000U);
  (void)folder.write("test_batch.bin", bytes);
  const auto source = open_cifar(folder.path(), CifarPart::test);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 10'000);
  EXPECT_TRUE((*source)->remarks().empty());
}

TEST_F(Cifar10, refuses_a_rest_behind_the_last_record) {
  put(3, record("\x01") + "xyz");
  EXPECT_EQ(refusal(), at("data_batch_3.bin") +
                           ": record 1 at byte 3073 has 3 bytes; CIFAR-10 needs 3073 a record, "
                           "and no rest");
}

TEST_F(Cifar10, refuses_an_empty_file) {
  put(1, "");
  EXPECT_EQ(refusal(),
            at("data_batch_1.bin") +
                ": record 0 at byte 0 has 0 bytes; CIFAR-10 needs 3073 a record, and "
                "no rest");
}

TEST_F(Cifar10, refuses_a_label_out_of_range) {
  put(2, record("\x01") + record("\x0a"));
  EXPECT_EQ(refusal(), at("data_batch_2.bin") +
                           ": record 1 at byte 3073: label 10; CIFAR-10 needs 0 to 9");
}

TEST_F(Cifar10, refuses_a_missing_file_of_the_five) {
  std::filesystem::remove(folder.path("data_batch_4.bin"));
  EXPECT_EQ(refusal(), "cannot read " + at("data_batch_4.bin") + ": No such file or directory");
}

TEST_F(Cifar10, refuses_names_that_are_missing_too_few_or_double) {
  (void)folder.write("batches.meta.txt", names(9));
  EXPECT_EQ(refusal(), at("batches.meta.txt") + ": names 9 classes; CIFAR-10 needs 10");
  (void)folder.write("batches.meta.txt", "cat\r\ndog\r\ncat\r\n");
  EXPECT_EQ(refusal(), at("batches.meta.txt") + R"(:3: class "cat" again; needed once)");
  std::filesystem::remove(folder.path("batches.meta.txt"));
  EXPECT_EQ(refusal(), "cannot read " + at("batches.meta.txt") + ": No such file or directory");
}

class Cifar100 : public testing::Test {
 protected:
  Cifar100() {
    (void)folder.write("fine_label_names.txt", names(100));
    (void)folder.write("test.bin", record("\x13\x63") + record(std::string("\0\0", 2)));
  }
  std::string refusal(const std::string& bytes) const {
    (void)folder.write("test.bin", bytes);
    const auto source = open_cifar(folder.path(), CifarPart::test);
    return source ? "" : source.error().message;
  }

  Folder folder;
};

TEST_F(Cifar100, is_labelled_by_its_fine_classes) {
  const auto source = open_cifar(folder.path(), CifarPart::test);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->classes().size(), 100);
  EXPECT_EQ((*source)->label(0), 99);
  EXPECT_EQ((*source)->label(1), 0);
  const auto image = (*source)->read(1);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->pixels[3071], 5);
}

TEST_F(Cifar100, refuses_either_label_out_of_range) {
  const std::string file = folder.path("test.bin").string();
  EXPECT_EQ(refusal(record("\x14\x01")),
            file + ": record 0 at byte 0: coarse label 20; CIFAR-100 needs 0 to 19");
  EXPECT_EQ(refusal(record("\x01\x02") + record("\x01\x64")),
            file + ": record 1 at byte 3075: label 100; CIFAR-100 needs 0 to 99");
}

TEST_F(Cifar100, refuses_records_of_the_other_layout) {
  EXPECT_EQ(refusal(std::string(1, '\x01') + kPixels),
            folder.path("test.bin").string() +
                ": record 0 at byte 0 has 3073 bytes; CIFAR-100 needs 3074 a record, and no "
                "rest");
}

TEST(Cifar, is_not_found_in_another_folder) {
  const Folder folder;
  EXPECT_EQ(cifar_in(folder.path()), nullptr);
  const auto source = open_cifar(folder.path(), CifarPart::train);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().message,
            folder.path().string() +
                ": no file of CIFAR in it; needed data_batch_1.bin to 5 and test_batch.bin, or "
                "train.bin and test.bin");
}

}  // namespace
}  // namespace halfwatt

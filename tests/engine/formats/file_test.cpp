#include "engine/formats/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

#include "engine/formats/folder.h"
#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(InputFile, reads_what_lies_at_an_offset) {
  const Folder folder;
  const auto file = InputFile::open(folder.write("a", "0123456789"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 10U);
  std::array<char, 3> into{};
  ASSERT_TRUE(file->read(4, std::as_writable_bytes(std::span(into))));
  EXPECT_EQ(std::string(into.begin(), into.end()), "456");
}

TEST(InputFile, says_when_the_file_has_become_shorter) {
  const Folder folder;
  const auto path = folder.write("a", "0123456789");
  const auto file = InputFile::open(path);
  std::filesystem::resize_file(path, 6);
  std::array<std::byte, 4> into{};
  const auto read = file->read(4, into);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            path.string() + ": ends at byte 6, 2 bytes early; it had 10 when it was opened");
}

TEST(InputFile, refuses_what_is_no_file_without_waiting_for_it) {
  const Folder folder;
  EXPECT_NE(InputFile::open(folder.path()).error().message.find("a folder; needed a file"),
            std::string::npos);
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(InputFile::open(folder.path("pipe")).error().message.find("no regular file"),
            std::string::npos);
  EXPECT_NE(InputFile::open(folder.path("none")).error().message.find("No such file"),
            std::string::npos);
}

TEST(NewFile, takes_the_old_ones_place_at_the_end_and_not_before) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  auto file = NewFile::begin(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write(bytes("new")));
  EXPECT_EQ(read_file(path), "old");
  ASSERT_TRUE(file->put_in_place());
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(NewFile, that_is_given_up_leaves_nothing_behind) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  {
    auto file = NewFile::begin(path);
    ASSERT_TRUE(file && file->write(bytes("new")));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(NewFile, writes_what_a_link_points_at) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  std::filesystem::create_symlink("a", folder.path("link"));
  auto file = NewFile::begin(folder.path("link"));
  ASSERT_TRUE(file && file->write(bytes("new")) && file->put_in_place());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_file(path), "new");
}

TEST(NewFile, refuses_places_where_none_can_be) {
  const Folder folder;
  const auto says = [](const std::filesystem::path& path) {
    const auto file = NewFile::begin(path);
    return file ? "nothing" : file.error().message;
  };
  EXPECT_NE(says("").find("the path is empty"), std::string::npos);
  EXPECT_NE(says(folder.path()).find("it is a folder"), std::string::npos);
  EXPECT_NE(says("/dev/null").find("no regular file"), std::string::npos);
  EXPECT_NE(says(folder.path("none/a")).find("does not exist; make it first"),
            std::string::npos);
  EXPECT_NE(says(folder.path("bad\nfolder/a")).find("bad\\nfolder/a"), std::string::npos);
}

// In a process of its own: root may write anywhere, and a limit of the size of files stays.
int write_with_no_room(const std::filesystem::path& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{4, 4};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  auto file = NewFile::begin(path);
  return file && !file->write(bytes("longer than four bytes")) ? 0 : 1;
}

TEST(NewFileDeathTest, leaves_the_old_one_where_there_is_no_room) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  EXPECT_EXIT(std::exit(write_with_no_room(path)), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.files(), 1U);
}

int write_as_nobody(const std::filesystem::path& path) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && ::setuid(kNobody) != 0) {
    return 1;
  }
  const auto file = NewFile::begin(path);
  return !file && file.error().message.find("Permission denied") != std::string::npos ? 0 : 1;
}

TEST(NewFileDeathTest, leaves_the_old_one_in_a_folder_that_is_read_only) {
  const Folder folder;
  const auto path = folder.write("a", "old");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EXIT(std::exit(write_as_nobody(path)), ::testing::ExitedWithCode(0), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(QuotedName, is_one_short_line_of_ascii) {
  EXPECT_EQ(quoted_name("blocks.0"), R"("blocks.0")");
  EXPECT_EQ(quoted_name("a\n\x1b[2J\x7f\xc3\xa9\xff"), R"("a\n\u001b[2J\u007f\u00e9\ufffd")");
  EXPECT_EQ(quoted_name(std::string(1000, 'x')), '"' + std::string(100, 'x') + "\"...");
  EXPECT_EQ(shown("/tmp/\xc3\xa9"), "/tmp/\xc3\xa9");
  EXPECT_EQ(shown("a\nb"), R"("a\nb")");
}

}  // namespace
}  // namespace halfwatt

#include "report/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test.
class WholeFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "halfwatt_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  const fs::path& folder() const { return folder_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  fs::path folder_;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string message(const Result<void>& result) {
  return result ? "no error" : result.error().message;
}

using Names = std::vector<std::string>;

TEST_F(WholeFile, replaces_the_file_and_leaves_nothing_else_behind) {
  const fs::path path = folder() / "report.html";
  ASSERT_TRUE(write_whole_file(path, "old").has_value());
  ASSERT_TRUE(write_whole_file(path, "new").has_value());
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(files(), Names{"report.html"});
}

TEST_F(WholeFile, is_readable_as_the_mask_of_the_user_says) {
  const mode_t old_mask = umask(022);
  const fs::path path = folder() / "report.html";
  ASSERT_TRUE(write_whole_file(path, "text").has_value());
  umask(old_mask);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0644));
}

TEST_F(WholeFile, follows_a_symbolic_link) {
  fs::create_symlink("target.html", folder() / "link.html");
  ASSERT_TRUE(write_whole_file(folder() / "target.html", "old").has_value());
  ASSERT_TRUE(write_whole_file(folder() / "link.html", "new").has_value());
  EXPECT_TRUE(fs::is_symlink(folder() / "link.html"));
  EXPECT_EQ(content(folder() / "target.html"), "new");
}

TEST_F(WholeFile, names_a_folder_that_is_missing) {
  const fs::path path = folder() / "missing" / "report.html";
  const auto result = write_whole_file(path, "text");
  EXPECT_EQ(message(result), "cannot write " + path.string() + ": the folder " +
                                 path.parent_path().string() +
                                 " does not exist; make it first");
  EXPECT_EQ(result.error().kind, ErrorKind::bad_input);
}

TEST_F(WholeFile, refuses_a_folder_and_an_empty_path) {
  EXPECT_EQ(message(write_whole_file(folder(), "text")),
            "cannot write " + folder().string() + ": it is a folder; give the path of a file");
  EXPECT_EQ(message(write_whole_file("", "text")), "cannot write : the path is empty");
}

TEST_F(WholeFile, says_that_a_folder_is_read_only) {
  const fs::path path = folder() / "report.html";
  fs::permissions(folder(), fs::perms(0555));
  constexpr uid_t kNobody = 65534;
  const bool root = geteuid() == 0;  // root may write anywhere, so it steps down for a moment
  if (root) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const auto result = write_whole_file(path, "text");
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(folder(), fs::perms(0755));
  EXPECT_EQ(message(result), "cannot write " + path.string() + ": Permission denied");
  EXPECT_EQ(files(), Names{});
}

TEST_F(WholeFile, keeps_the_old_file_when_the_new_one_does_not_fit) {
  const fs::path path = folder() / "report.html";
  ASSERT_TRUE(write_whole_file(path, "old").has_value());
  // A limit on the size of files stands for a full disk.
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = write_whole_file(path, std::string(100'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(message(result), "cannot write " + path.string() + ": File too large");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), Names{"report.html"});
}

TEST_F(WholeFile, says_that_a_device_is_full_and_does_not_replace_it) {
  EXPECT_EQ(message(write_whole_file("/dev/full", "text")),
            "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(WholeFile, writes_into_a_pipe_named_by_its_descriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[1]);  // as /dev/stdout may be
  EXPECT_EQ(message(write_whole_file(path, "text")), "no error");
  char received[4] = {};
  EXPECT_EQ(read(ends[0], received, sizeof received), 4);
  EXPECT_EQ(std::string(received, 4), "text");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(WholeFile, writes_into_a_device) {
  EXPECT_EQ(message(write_whole_file("/dev/null", "text")), "no error");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(WholeFile, writes_a_name_without_a_folder_into_the_working_folder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder());
  const Result<void> written = write_whole_file("page.html", "text");
  fs::current_path(before);
  EXPECT_EQ(message(written), "no error");
  EXPECT_EQ(content(folder() / "page.html"), "text");
}

}  // namespace
}  // namespace halfwatt

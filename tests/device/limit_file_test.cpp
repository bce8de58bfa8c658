#include "device/limit_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace halfwatt {
namespace {

const LimitRange kRange{Watts(100), Watts(400), Watts(350)};

class LimitFileTest : public testing::Test {
 protected:
  LimitFileTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~LimitFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path path() const { return folder_ / "limit"; }

 private:
  std::filesystem::path folder_;
};

TEST_F(LimitFileTest, holds_the_limit_and_the_range_it_was_made_with) {
  const auto made = LimitFile::create(path(), kRange, Watts(300));
  ASSERT_TRUE(made) << made.error().message;
  const auto opened = LimitFile::open(path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->limit(), Watts(300));
  EXPECT_EQ(opened->range(), kRange);
}

TEST_F(LimitFileTest, keeps_that_the_vendor_names_no_preset) {
  const LimitRange range{Watts(100), Watts(400), std::nullopt};
  ASSERT_TRUE(LimitFile::create(path(), range, Watts(300)));
  EXPECT_EQ(LimitFile::open(path())->range(), range);
}

TEST_F(LimitFileTest, shows_every_process_what_another_one_set) {
  auto file = LimitFile::create(path(), kRange, Watts(300));
  ASSERT_TRUE(file);
  const pid_t child = ::fork();
  if (child == 0) {
    auto opened = LimitFile::open(path());
    ::_exit(opened && opened->set(Watts(123.456)) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(file->limit(), Watts(123.456));
  EXPECT_EQ(file->writes(), 1U);
}

TEST_F(LimitFileTest, refuses_a_limit_outside_its_range_and_keeps_the_old_one) {
  auto file = LimitFile::create(path(), kRange, Watts(300));
  ASSERT_TRUE(file);
  for (const double watts : {99.9, 400.1, 0.0, -1.0, std::nan("")}) {
    EXPECT_FALSE(file->set(Watts(watts))) << watts;
  }
  EXPECT_EQ(file->limit(), Watts(300));
  EXPECT_EQ(file->writes(), 0U);
}

TEST_F(LimitFileTest, refuses_to_start_outside_its_range) {
  EXPECT_FALSE(LimitFile::create(path(), kRange, Watts(500)));
  EXPECT_FALSE(LimitFile::create(path(), {Watts(400), Watts(100), std::nullopt}, Watts(300)));
}

TEST_F(LimitFileTest, is_not_fooled_by_other_files) {
  EXPECT_FALSE(LimitFile::open(path()));
  std::ofstream(path()) << "short";
  EXPECT_FALSE(LimitFile::open(path()));
  std::ofstream(path()) << std::string(28, 'x');
  const auto opened = LimitFile::open(path());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("not a limit file"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

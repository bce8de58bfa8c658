#include "base/remark.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

namespace halfwatt {
namespace {

/// Standard error is another file while this lives.
class StandardError {
 public:
  explicit StandardError(int file) : before_(::dup(STDERR_FILENO)) {
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

TEST(Remark, is_a_line_with_the_name_of_the_program) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    const StandardError there(pipe[1]);
    remark("300 W again");
  }
  std::array<char, 64> text{};
  EXPECT_EQ(std::string(text.data(),
                        static_cast<std::size_t>(::read(pipe[0], text.data(), text.size()))),
            "halfwatt: 300 W again\n");
  ::close(pipe[0]);
}

TEST(Remark, is_lost_without_harm_where_nobody_can_hear_it) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ::close(pipe[0]);
  {
    const StandardError nobody_reads(pipe[1]);
    remark("a SIGPIPE would end this test");
  }
  {
    const StandardError full(::open("/dev/full", O_WRONLY));
    remark("no room");
  }
  {
    const StandardError closed(::open("/dev/null", O_RDONLY));
    remark("not for writing");
  }
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace halfwatt

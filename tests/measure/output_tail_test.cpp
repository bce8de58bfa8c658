#include "measure/output_tail.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

std::string last_line(std::string_view bytes) {
  OutputTail tail;
  tail.add(bytes);
  return tail.last_line();
}

TEST(OutputTail, gives_the_last_line_with_something_on_it) {
  EXPECT_EQ(last_line("first\nsecond\n\n  \r\n"), "second");
  EXPECT_EQ(last_line("\r 10%\r 20%"), "20%");
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line("\n\n"), "");
}

TEST(OutputTail, gives_nothing_that_could_move_a_terminal) {
  EXPECT_EQ(last_line("\x1b[31mred\x1b[0m\a\x1b]0;title"), "red]0;title");
  EXPECT_EQ(last_line("\xff\xfe\x80 end"), "? end");
}

TEST(OutputTail, keeps_little_of_much) {
  OutputTail tail;
  for (int i = 0; i < 10000; ++i) {
    tail.add(std::string(1000, 'x'));
  }
  EXPECT_LT(tail.last_line().size(), 200U);
  tail.add(std::string(1 << 20, 'y') + "\nlast");
  EXPECT_EQ(tail.last_line(), "last");
}

TEST(OutputTail, knows_how_programs_say_that_memory_ran_out) {
  for (const char* words :
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate", "MemoryError",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory"}) {
    OutputTail tail;
    tail.add(words);
    EXPECT_TRUE(tail.tells_out_of_memory()) << words;
  }
  OutputTail tail;
  tail.add("FileNotFoundError: data.bin");
  EXPECT_FALSE(tail.tells_out_of_memory());
}

}  // namespace
}  // namespace halfwatt

#include "guard/cards.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "guard/file_limit.h"

namespace halfwatt {

Cards::Cards(int count) {
  std::string name = (std::filesystem::temp_directory_path() / "halfwatt-test-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  folder_ = name;
  for (int card = 0; card < count; ++card) {
    auto file = LimitFile::create(folder_ / fmt::format("card{}", card),
                                  {Watts(100), Watts(400), Watts(350)}, kFound);
    EXPECT_TRUE(file);
    files_.push_back(std::move(*file));
  }
}

Cards::~Cards() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> Cards::names() const {
  std::vector<std::string> names;
  for (const LimitFile& file : files_) {
    names.push_back(std::string(FileLimit::kPrefix) + file.path().string());
  }
  return names;
}

GuardianOrder Cards::order() const { return {names(), state().string()}; }

bool Cards::all_at(Watts limit) const {
  return std::all_of(files_.begin(), files_.end(),
                     [limit](const LimitFile& file) { return file.limit() == limit; });
}

bool wait_until(const std::function<bool()>& condition, double seconds) {
  SteadyClock clock;
  const Seconds end = clock.now() + Seconds(seconds);
  while (!condition()) {
    if (clock.now() > end) {
      return false;
    }
    clock.sleep_until(clock.now() + Seconds(0.001));
  }
  return true;
}

pid_t start_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body());
  }
  return child;
}

int end_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

}  // namespace halfwatt

#include "guard/privilege.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "guard/cards.h"
#include "guard/guardian_client.h"

namespace halfwatt {
namespace {

constexpr uid_t kNobody = 65534;

class PrivilegeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
  }
};

void start_as_by_sudo() {
  ::setenv("SUDO_UID", "65534", 1);
  ::setenv("SUDO_GID", "65534", 1);
  ::setenv("HOME", "/root", 1);
}

TEST_F(PrivilegeTest, goes_back_to_the_user_who_called_sudo_with_groups_and_home) {
  const int status = end_of(start_child([] {
    start_as_by_sudo();
    if (!drop_privileges()) {
      return 1;
    }
    gid_t groups[64];
    const int count = ::getgroups(64, groups);
    for (int at = 0; at < count; ++at) {
      if (groups[at] == 0) {
        return 2;
      }
    }
    const bool dropped = ::getuid() == kNobody && ::geteuid() == kNobody &&
                         ::getgid() == kNobody && ::getegid() == kNobody;
    return dropped && std::string(std::getenv("HOME")) != "/root" ? 0 : 3;
  }));
  EXPECT_EQ(status, 0);
}

TEST_F(PrivilegeTest, is_gone_for_good_in_what_is_started_afterwards) {
  const int status = end_of(start_child([] {
    start_as_by_sudo();
    (void)drop_privileges();
    ::execl("/bin/sh", "sh", "-c", "grep -q '^Uid:.65534.65534.65534' /proc/self/status",
            nullptr);
    return 1;
  }));
  EXPECT_EQ(status, 0);
}

TEST_F(PrivilegeTest, can_be_had_back_by_one_thread_that_starts_another_guardian) {
  const int status = end_of(start_child([] {
    start_as_by_sudo();
    (void)drop_privileges();
    bool again = false;
    std::thread([&again] {
      const RootAgain root;
      again = ::syscall(SYS_geteuid) == 0;
    }).join();
    return again && ::geteuid() == kNobody ? 0 : 1;
  }));
  EXPECT_EQ(status, 0);
}

TEST_F(PrivilegeTest, of_a_guardian_outlives_that_of_its_parent) {
  const Cards cards;
  const int status = end_of(start_child([&] {
    start_as_by_sudo();
    auto client = GuardianClient::start(cards.order());
    if (!client || !drop_privileges() || !(*client)->set(Watts(200))) {
      return 1;
    }
    const pid_t first = (*client)->guardian_pid();
    {
      std::thread([&] {
        const RootAgain root;
        ::syscall(SYS_kill, first, SIGKILL);
      }).join();
    }
    if (!wait_until([&] { return (*client)->guardian_pid() != first; })) {
      return 2;
    }
    return cards.all_at(Cards::kFound) && (*client)->set(Watts(250)) && (*client)->restore()
               ? 0
               : 3;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(cards.all_at(Cards::kFound));
}

// A sudo that grants everything and notes what it was asked for.
void put_fake_sudo_first(const Cards& folder) {
  const std::string sudo = (folder.folder() / "sudo").string();
  std::ofstream(sudo) << "#!/bin/sh\n"
                         "shift; [ \"$1\" = -- ] && shift\n"
                         "[ \"$2\" = __guardian ] && echo \"$2\" > \"${0%/*}/asked\"\n"
                         "exec \"$@\"\n";
  std::filesystem::permissions(sudo, std::filesystem::perms{0755});
  std::filesystem::permissions(folder.folder(), std::filesystem::perms{0777});
  ::setenv("PATH", (folder.folder().string() + ":" + std::getenv("PATH")).c_str(), 1);
}

constexpr int kUnreachable = 77;

TEST(Sudo, starts_the_guardian_of_a_real_card_for_who_may_not_set_limits) {
  const Cards folder(0);
  const int status = end_of(start_child([&] {
    ::unsetenv("HALFWATT_NVML");
    put_fake_sudo_first(folder);
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) {
      return 1;
    }
    if (::access(std::filesystem::read_symlink("/proc/self/exe").c_str(), X_OK) != 0) {
      return kUnreachable;
    }
    const auto client =
        GuardianClient::start({{"GPU-that-is-not-there"}, folder.state().string()});
    // Whatever is wrong with the card, it was the guardian's answer.
    return !client && client.error().message.find("guardian died") == std::string::npos ? 0 : 2;
  }));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnreachable) {
    GTEST_SKIP() << "the build lies in a folder that only root may enter";
  }
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.folder() / "asked"));
}

TEST(CallingUser, is_nobody_without_sudo) {
  ::unsetenv("SUDO_UID");
  EXPECT_FALSE(calling_user());
  EXPECT_TRUE(drop_privileges()) << "harmless then";
}

}  // namespace
}  // namespace halfwatt

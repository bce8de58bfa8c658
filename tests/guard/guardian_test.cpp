#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>

#include "guard/cards.h"
#include "guard/guardian_client.h"
#include "guard/journal.h"

namespace halfwatt {
namespace {

std::unique_ptr<GuardianClient> start(const Cards& cards) {
  auto client = GuardianClient::start(cards.order());
  EXPECT_TRUE(client) << client.error().message;
  return client ? std::move(*client) : nullptr;
}

/// A process that sets 200 W on every card and then does `last`, for ever if that returns.
pid_t start_parent(const Cards& cards, const std::function<void(GuardianClient&)>& last) {
  return start_child([&] {
    auto client = GuardianClient::start(cards.order());
    if (!client || !(*client)->set(Watts(200))) {
      return 1;
    }
    last(**client);
    while (true) {
      ::pause();
    }
    return 0;
  });
}

void nothing(GuardianClient&) {}

/// As /proc tells it: 'T' is stopped.
char state_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(in, line);
  const std::size_t at = line.rfind(") ");
  return at == std::string::npos ? '?' : line[at + 2];
}

TEST(Guardian, tells_what_it_found_and_writes_what_it_is_told) {
  Cards cards(2);
  ASSERT_TRUE(cards[1].set(Watts(300)));
  auto client = start(cards);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->found(), Watts(300));
  EXPECT_EQ(client->states()[0].requested, Watts(350));
  EXPECT_EQ(client->states()[0].range, cards[0].range());
  EXPECT_EQ(client->top(), Watts(300));
  EXPECT_EQ(client->bottom(), Watts(100));
  EXPECT_EQ(client->set(Watts(200)).value(), Watts(200));
  EXPECT_TRUE(cards.all_at(Watts(200)));
  ASSERT_TRUE(client->restore());
  EXPECT_EQ(cards[0].limit(), Watts(350));
  EXPECT_EQ(cards[1].limit(), Watts(300));
  EXPECT_FALSE(client->set(Watts(200)));
}

TEST(Guardian, closes_its_entries_when_all_is_back) {
  Cards cards(2);
  {
    auto client = start(cards);
    EXPECT_EQ(Journal(cards.state()).cards(), cards.names());
  }
  EXPECT_TRUE(Journal(cards.state()).cards().empty());
}

TEST(Guardian, has_the_intent_on_the_disk_before_every_write) {
  Cards cards;
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(300)));
  ASSERT_TRUE(client->set(Watts(200)));
  const auto entry = Journal(cards.state()).read(cards.names()[0]);
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->found, Watts(350));
  EXPECT_EQ((*entry)->intent, Watts(200));
  EXPECT_EQ((*entry)->previous_intent, Watts(300));
  EXPECT_EQ((*entry)->found_persistence, true);
  EXPECT_EQ((*entry)->load, current_load());
}

TEST(Guardian, writes_nothing_that_it_cannot_journal) {
  Cards cards;
  std::ofstream(cards.folder() / "file") << "in the way";
  GuardianOrder order = cards.order();
  order.state_dir = (cards.folder() / "file").string();
  const auto client = GuardianClient::start(order);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("--state-dir"), std::string::npos);
  EXPECT_EQ(cards[0].writes(), 0U);
}

TEST(Guardian, puts_limits_back_when_its_parent_is_killed) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGTERM, SIGABRT}) {
    Cards cards(2);
    const pid_t parent = start_parent(cards, nothing);
    ASSERT_TRUE(wait_until([&] { return cards.all_at(Watts(200)); }));
    ::kill(parent, signal);
    EXPECT_TRUE(wait_until([&] { return cards.all_at(Cards::kFound); }, 2)) << signal;
    end_of(parent);
  }
}

TEST(Guardian, puts_every_card_back_where_nobody_hears_what_it_says) {
  Cards cards(3);
  const pid_t parent = start_child([&] {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) {
      return 1;
    }
    ::close(pipe[0]);  // as where `2>&1 | head` has ended
    auto client = GuardianClient::start(cards.order());
    if (!client || !(*client)->set(Watts(200))) {
      return 1;
    }
    while (true) {
      ::pause();
    }
    return 0;
  });
  ASSERT_TRUE(wait_until([&] { return cards.all_at(Watts(200)); }));
  ::kill(parent, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return cards.all_at(Cards::kFound); }, 2));
  end_of(parent);
}

TEST(Guardian, says_why_its_folder_cannot_be_made) {
  Cards cards;
  GuardianOrder order = cards.order();
  order.state_dir = "/proc/self/no/such/folder";  // for root, too
  const auto client = GuardianClient::start(order);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("--state-dir"), std::string::npos);
}

TEST(Guardian, does_not_mistake_a_child_of_its_parent_for_it) {
  Cards cards;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t parent = start_parent(cards, [&](GuardianClient&) {
    if (::fork() == 0) {  // keeps every file of its parent open, as a forked worker does
      ::close(pipe[1]);
      char byte = 0;
      (void)!::read(pipe[0], &byte, 1);
      ::_exit(0);
    }
  });
  ::close(pipe[0]);
  ASSERT_TRUE(wait_until([&] { return cards.all_at(Watts(200)); }));
  ::kill(parent, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return cards.all_at(Cards::kFound); }, 2));
  ::close(pipe[1]);
  end_of(parent);
}

TEST(Guardian, is_not_ended_by_what_a_terminal_sends) {
  Cards cards;
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(200)));
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGTSTP}) {
    ASSERT_EQ(::kill(client->guardian_pid(), signal), 0);
  }
  EXPECT_EQ(client->set(Watts(250)).value(), Watts(250));
  EXPECT_TRUE(client->check());
  EXPECT_NE(::getsid(client->guardian_pid()), ::getsid(0));
}

TEST(Guardian, restores_at_once_on_term) {
  Cards cards;
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(200)));
  ASSERT_EQ(::kill(client->guardian_pid(), SIGTERM), 0);
  EXPECT_TRUE(wait_until([&] { return cards.all_at(Cards::kFound); }, 2));
}

TEST(Guardian, is_replaced_when_it_dies_and_the_limits_go_back) {
  Cards cards(2);
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(200)));
  const pid_t first = client->guardian_pid();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(wait_until([&] { return cards.all_at(Cards::kFound); }, 2));
  ASSERT_TRUE(wait_until([&] { return client->guardian_pid() != first; }));
  const auto told = client->check();
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("the guardian died"), std::string::npos);
  EXPECT_TRUE(client->check()) << "once is enough";
  EXPECT_TRUE(client->alive());
  EXPECT_EQ(client->found(), Cards::kFound);
  EXPECT_EQ(client->set(Watts(250)).value(), Watts(250));
  EXPECT_TRUE(client->restore());
  EXPECT_TRUE(cards.all_at(Cards::kFound));
}

TEST(Guardian, keeps_no_file_of_its_parent_open) {
  Cards cards;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  auto client = start(cards);
  ::close(pipe[1]);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0) << "the end of the pipe is seen";
  ::close(pipe[0]);
}

TEST(Guardian, leaves_alone_what_somebody_else_set_meanwhile) {
  Cards cards(2);
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(200)));
  ASSERT_TRUE(cards[0].set(Watts(222)));
  const auto set = client->set(Watts(250));
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("stands at 222 W, which somebody else set"),
            std::string::npos)
      << set.error().message;
  const auto back = client->restore();
  ASSERT_FALSE(back);
  EXPECT_EQ(exit_code(back.error().kind), 3);
  EXPECT_NE(back.error().message.find("222 W"), std::string::npos);
  EXPECT_NE(back.error().message.find("350 W was found"), std::string::npos);
  EXPECT_EQ(cards[0].limit(), Watts(222));
  EXPECT_EQ(cards[1].limit(), Watts(350));
}

TEST(Guardian, tells_of_every_card_that_it_leaves_alone) {
  Cards cards(3);
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(200)));
  ASSERT_TRUE(cards[0].set(Watts(222)));
  ASSERT_TRUE(cards[2].set(Watts(111)));
  const auto back = client->restore();
  ASSERT_FALSE(back);
  for (const std::string value : {"stands at 222 W", "stands at 111 W"}) {
    EXPECT_NE(back.error().message.find(value), std::string::npos) << back.error().message;
  }
  EXPECT_EQ(cards[1].limit(), Cards::kFound);
}

TEST(Guardian, never_raises_what_somebody_lowered) {
  Cards cards;
  ASSERT_TRUE(cards[0].set(Watts(300)));
  auto client = start(cards);
  EXPECT_EQ(client->top(), Watts(300));
  EXPECT_FALSE(client->set(Watts(301)));
  EXPECT_FALSE(client->set(Watts(99)));
  EXPECT_EQ(cards[0].limit(), Watts(300));
}

TEST(Guardian, raises_as_far_as_max_limit_says_and_says_so_first) {
  Cards cards;
  ASSERT_TRUE(cards[0].set(Watts(300)));
  GuardianOrder order = cards.order();
  order.max_limit = Watts(380);
  auto client = GuardianClient::start(order);
  ASSERT_TRUE(client);
  ASSERT_EQ((*client)->remarks().size(), 1U);
  EXPECT_NE((*client)->remarks()[0].find("above the 300 W found"), std::string::npos);
  EXPECT_EQ((*client)->set(Watts(380)).value(), Watts(380));
  EXPECT_FALSE((*client)->set(Watts(381)));
  ASSERT_TRUE((*client)->restore());
  EXPECT_EQ(cards[0].limit(), Watts(300));
}

TEST(Guardian, leaves_no_card_half_way_when_one_refuses) {
  Cards cards(3);
  auto client = start(cards);
  ASSERT_TRUE(client->set(Watts(250)));
  ASSERT_TRUE(cards[2].set(Watts(123)));  // so that the third one refuses
  EXPECT_FALSE(client->set(Watts(200)));
  EXPECT_EQ(cards[0].limit(), Watts(250));
  EXPECT_EQ(cards[1].limit(), Watts(250));
}

TEST(Guardian, refuses_a_card_that_another_halfwatt_holds_and_says_who) {
  Cards cards;
  auto first = start(cards);
  ASSERT_TRUE(first->set(Watts(200)));
  const auto second = GuardianClient::start(cards.order());
  ASSERT_FALSE(second);
  EXPECT_EQ(exit_code(second.error().kind), 3);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos)
      << second.error().message;
  EXPECT_NE(second.error().message.find("since"), std::string::npos);
  EXPECT_TRUE(cards.all_at(Watts(200)));
}

TEST(Guardian, puts_back_at_the_next_start_what_a_double_death_left) {
  Cards cards(2);
  const pid_t parent = start_parent(cards, [](GuardianClient& client) {
    ::kill(client.guardian_pid(), SIGKILL);
    ::kill(::getpid(), SIGKILL);
  });
  end_of(parent);
  auto client = start(cards);
  ASSERT_NE(client, nullptr);
  EXPECT_TRUE(cards.all_at(Cards::kFound));
  EXPECT_EQ(client->found(), Cards::kFound);
}

TEST(Guardian, continues_stopped_process_groups_on_every_way_out) {
  for (const bool killed : {true, false}) {
    Cards cards;
    const pid_t workload = start_child([] {
      ::setpgid(0, 0);
      while (true) {
        ::pause();
      }
      return 0;
    });
    ::setpgid(workload, workload);
    const pid_t parent = start_parent(cards, [&](GuardianClient& client) {
      (void)client.continue_group(workload);
      ::kill(-workload, SIGSTOP);
      // A stop that has not happened yet would be forgotten over the continue.
      (void)wait_until([&] { return state_of(workload) == 'T'; });
      if (!killed) {
        (void)client.restore();
      }
    });
    int status = 0;
    while (!WIFCONTINUED(status)) {  // it may be continued before the stop was seen
      ASSERT_EQ(::waitpid(workload, &status, WUNTRACED | WCONTINUED), workload);
      if (WIFSTOPPED(status) && killed) {
        ::kill(parent, SIGKILL);
      }
    }
    ::kill(parent, SIGKILL);
    ::kill(workload, SIGKILL);
    end_of(workload);
    end_of(parent);
  }
}

}  // namespace
}  // namespace halfwatt

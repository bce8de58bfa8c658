#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "guard/card_lock.h"
#include "guard/cards.h"
#include "guard/guardian_client.h"
#include "guard/leftovers.h"
#include "guard/surroundings.h"

namespace halfwatt {
namespace {

/// Leaves the cards at 200 W, as a double death does.
void leave_changed(const Cards& cards) {
  end_of(start_child([&] {
    auto client = GuardianClient::start(cards.order());
    if (client && (*client)->set(Watts(200))) {
      ::kill((*client)->guardian_pid(), SIGKILL);
      ::kill(::getpid(), SIGKILL);
    }
    return 1;
  }));
  // A process that was killed takes a moment to be gone.
  EXPECT_TRUE(wait_until(
      [&] { return !known_cards(cards.state().string()).front().holder.has_value(); }));
}

TEST(KnownCards, are_those_that_somebody_holds_with_what_was_found) {
  const Cards cards;
  auto client = GuardianClient::start(cards.order());
  ASSERT_TRUE(client && (*client)->set(Watts(200)));
  const auto known = known_cards(cards.state().string());
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].card, cards.names()[0]);
  ASSERT_TRUE(known[0].holder && known[0].entry);
  EXPECT_EQ(known[0].holder->pid, ::getpid());
  EXPECT_EQ(known[0].entry->found, Watts(350));
  EXPECT_EQ(put_back_known(known[0], false).error().kind, ErrorKind::device) << "it is held";
  EXPECT_TRUE(cards.all_at(Watts(200)));
}

TEST(KnownCards, are_none_once_all_is_back) {
  const Cards cards;
  { auto client = GuardianClient::start(cards.order()); }
  EXPECT_TRUE(known_cards(cards.state().string()).empty());
  EXPECT_TRUE(known_cards("/nonexistent").empty());
}

TEST(KnownCards, are_put_back_when_their_holder_is_gone) {
  const Cards cards(2);
  leave_changed(cards);
  ASSERT_TRUE(cards.all_at(Watts(200)));
  for (const KnownCard& card : known_cards(cards.state().string())) {
    EXPECT_FALSE(card.holder);
    const auto back = put_back_known(card, false);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->action, RestoreAction::put_back);
  }
  EXPECT_TRUE(cards.all_at(Cards::kFound));
  EXPECT_TRUE(known_cards(cards.state().string()).empty());
}

TEST(KnownCards, keep_a_strangers_limit_unless_forced) {
  Cards cards;
  leave_changed(cards);
  ASSERT_TRUE(cards[0].set(Watts(222)));
  const auto known = known_cards(cards.state().string());
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(put_back_known(known[0], false)->action, RestoreAction::foreign);
  EXPECT_EQ(cards[0].limit(), Watts(222));
  EXPECT_EQ(put_back_known(known[0], true)->action, RestoreAction::put_back);
  EXPECT_EQ(cards[0].limit(), Watts(350));
}

TEST(KnownCards, are_closed_with_a_word_after_a_restart) {
  Cards cards;
  leave_changed(cards);
  const Journal journal(cards.state());
  JournalEntry entry = **journal.read(cards.names()[0]);
  entry.load.boot = "an earlier one";
  ASSERT_TRUE(journal.write(entry));
  const auto back = put_back_known(known_cards(cards.state().string())[0], false);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->action, RestoreAction::forgotten);
  EXPECT_NE(back->sentence.find("started anew"), std::string::npos);
  EXPECT_EQ(cards[0].limit(), Watts(200)) << "nothing is written";
  EXPECT_TRUE(journal.cards().empty());
}

TEST(CardLock, is_let_go_with_its_holder_and_follows_no_link) {
  const Cards folder(0);
  const Holder me = holder(::getpid());
  {
    const auto first = CardLock::take(folder.state(), "x", me, Seconds(0));
    ASSERT_TRUE(first);
    EXPECT_EQ(find_holder(folder.state(), "x"), me);
    EXPECT_FALSE(CardLock::take(folder.state(), "x", me, Seconds(0)));
  }
  EXPECT_EQ(find_holder(folder.state(), "x"), std::nullopt);
  EXPECT_TRUE(CardLock::take(folder.state(), "x", me, Seconds(0)));
  std::filesystem::create_symlink(folder.folder() / "target", folder.state() / "y.lock");
  EXPECT_FALSE(CardLock::take(folder.state(), "y", me, Seconds(0)));
}

TEST(Surroundings, name_what_kills_both_at_once) {
  const Cards root(0);
  const auto proc = root.folder() / "proc/self";
  std::filesystem::create_directories(proc);
  std::ofstream(proc / "cgroup") << "0::/pod\n";
  std::ofstream(proc / "status") << "Name:\thalfwatt\nNSpid:\t4711\t12\n";
  EXPECT_TRUE(deaths_at_once(root.folder()).empty());

  std::ofstream(proc / "status") << "Name:\thalfwatt\nNSpid:\t4711\t1\n";
  const auto group = root.folder() / "sys/fs/cgroup/pod";
  std::filesystem::create_directories(group);
  std::ofstream(group / "memory.oom.group") << "1\n";
  const auto both = deaths_at_once(root.folder());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_NE(both[0].find("process 1 of its container"), std::string::npos);
  EXPECT_NE(both[1].find("memory.oom.group"), std::string::npos);
}

TEST(Surroundings, name_the_epilog_and_the_unit_that_help) {
  const Cards root(0);
  const auto proc = root.folder() / "proc/self";
  std::filesystem::create_directories(proc);
  std::ofstream(proc / "cgroup") << "0::/system.slice/slurmstepd.scope/job_12/step_0\n";
  ASSERT_EQ(deaths_at_once(root.folder()).size(), 1U);
  EXPECT_NE(deaths_at_once(root.folder())[0].find("epilog"), std::string::npos);
  std::ofstream(proc / "cgroup") << "0::/system.slice/train.service\n";
  EXPECT_NE(deaths_at_once(root.folder())[0].find("ExecStopPost"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

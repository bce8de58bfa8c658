// A guardian is there before anybody looks for cards, and gone with a command that fails.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/fake_cards.h"
#include "guard/guardian.h"

namespace halfwatt {
namespace {

/// A process, as /proc tells it.
struct Process {
  pid_t id = 0;
  pid_t parent = 0;
  char state = '?';  ///< 'T' is stopped
  bool is_guardian = false;
};

// Those with this test's cards: nobody else has their script in the environment.
std::vector<Process> processes_of(const FakeCards& cards) {
  std::vector<Process> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string environment = read_file(entry.path() / "environ");
    if (environment.find(cards.fake.script_path()) == std::string::npos) {
      continue;
    }
    const std::string stat = read_file(entry.path() / "stat");
    const std::string words = read_file(entry.path() / "cmdline");
    const std::size_t end = stat.rfind(") ");
    if (end != std::string::npos) {
      found.push_back({std::stoi(entry.path().filename()), std::stoi(stat.substr(end + 4)),
                       stat[end + 2], words.ends_with(std::string(kGuardianVerb) + '\0')});
    }
  }
  return found;
}

/// Cards whose NVML stops the first process that looks at it, just before it does.
FakeCards cards_that_stop_who_looks_first() {
  fake_nvml::Script script = FakeNvml::cards(1);
  fake_nvml::Fault fault;
  fault.symbol = "nvmlInit*";
  fault.until_call = 1;
  fault.raise_before = SIGSTOP;
  script.faults.push_back(fault);
  return FakeCards(std::move(script));
}

/// Runs `words` until it is about to look at NVML, and then to its end.
struct FirstLook {
  std::vector<Process> processes;  ///< when it is about to
  Process looks;                   ///< and who does
  Outcome outcome;

  FirstLook(const FakeCards& cards, const std::string& words) {
    auto run = std::async(std::launch::async, [&] { return cards.run(words); });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (looks.id == 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      see(cards);
    }
    // Who is stopped starts nobody any more, but whom it has started may still be on its way
    // to its command line.
    const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (looks.id != 0 && guardians().empty() && std::chrono::steady_clock::now() < soon) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      see(cards);
    }
    if (looks.id != 0) {
      ::kill(looks.id, SIGCONT);
    }
    outcome = run.get();
  }

  void see(const FakeCards& cards) {
    processes = processes_of(cards);
    for (const Process& each : processes) {
      looks = each.state == 'T' ? each : looks;
    }
  }

  std::vector<Process> guardians() const {
    std::vector<Process> found;
    for (const Process& each : processes) {
      if (each.is_guardian) {
        found.push_back(each);
      }
    }
    return found;
  }
};

std::vector<std::string> commands_that_write(const FakeCards& cards) {
  return {"run --limit 200" + cards.state() + "-- true",
          "sweep --limits 200 --patience 0.2" + cards.state() + "-- true",
          "tune --patience 0.2" + cards.state() + "-- true"};
}

TEST(EarlyGuardian, is_there_before_halfwatt_looks_at_nvml) {
  for (std::size_t at = 0; at < 3; ++at) {
    FakeCards cards = cards_that_stop_who_looks_first();
    const std::string words = commands_that_write(cards)[at];
    const FirstLook look(cards, words);
    ASSERT_NE(look.looks.id, 0) << words << look.outcome.err;
    EXPECT_FALSE(look.looks.is_guardian) << words;
    ASSERT_EQ(look.guardians().size(), 1U) << words;
    EXPECT_EQ(look.guardians()[0].parent, look.looks.id) << words;
    EXPECT_FALSE(limits_written(cards.fake, 0).empty()) << words << look.outcome.err;
    EXPECT_EQ(cards.fake.requested_mw(), 350'000U) << words;
    EXPECT_TRUE(processes_of(cards).empty()) << words;
  }
}

TEST(EarlyGuardian, sets_the_limit_that_is_to_stay) {
  FakeCards cards = cards_that_stop_who_looks_first();
  const FirstLook look(cards, "limit 280" + cards.state());
  ASSERT_NE(look.looks.id, 0) << look.outcome.err;
  ASSERT_EQ(look.guardians().size(), 1U);
  EXPECT_EQ(look.outcome.status, 0) << look.outcome.err;
  ASSERT_EQ(cards.fake.writes(0).size(), 1U);
  EXPECT_EQ(cards.fake.writes(0)[0].pid, look.guardians()[0].id);
  EXPECT_EQ(cards.fake.requested_mw(), 280'000U);
  EXPECT_TRUE(processes_of(cards).empty());
}

TEST(EarlyGuardian, is_not_there_where_nothing_will_be_written) {
  for (const std::string words : {"sweep --measure-only --patience 0.2 -- true",
                                  "sweep --limits 200 --dry-run -- true", "limit"}) {
    FakeCards cards = cards_that_stop_who_looks_first();
    const FirstLook look(cards, words);
    ASSERT_NE(look.looks.id, 0) << words;
    EXPECT_TRUE(look.guardians().empty()) << words;
    EXPECT_TRUE(cards.fake.writes(0).empty()) << words;
  }
}

TEST(EarlyGuardian, is_gone_without_a_word_when_the_command_fails) {
  for (std::size_t at = 0; at < 3; ++at) {
    FakeCards cards = cards_that_stop_who_looks_first();
    std::string words = commands_that_write(cards)[at];
    words.insert(words.find("--state-dir"), "--device gpu:7 ");
    const FirstLook look(cards, words);
    EXPECT_EQ(look.guardians().size(), 1U) << words;
    EXPECT_EQ(look.outcome.status, words.starts_with("run") ? 125 : 3) << words;
    EXPECT_NE(look.outcome.err.find("there is none"), std::string::npos) << look.outcome.err;
    EXPECT_EQ(look.outcome.err.find('\n') + 1, look.outcome.err.size()) << look.outcome.err;
    EXPECT_TRUE(processes_of(cards).empty()) << words;
  }
}

/// Whether sudo is asked when somebody without privilege types `words`; nullopt where that
/// cannot be tried.
std::optional<bool> asks_sudo(const std::string& words) {
  const Folder folder;
  const std::string sudo = folder.write("sudo", "#!/bin/sh\n: > \"${0%/*}/asked\"\nexit 1\n");
  std::filesystem::permissions(sudo, std::filesystem::perms{0755});
  std::filesystem::permissions(folder.path(""), std::filesystem::perms{0777});
  const std::string nobody =
      "env -u HALFWATT_NVML PATH='" + folder.path("") + "':\"$PATH\" " +
      (::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "");
  if (run_program("--version", nobody).status != 0) {
    return std::nullopt;
  }
  run_program(words + " --state-dir '" + folder.path("state") + "' -- true", nobody);
  return std::filesystem::exists(folder.path("asked"));
}

TEST(EarlyGuardian, gets_privilege_by_what_the_command_line_names) {
  const auto asked = asks_sudo("run --limit 200 --device gpu:0");
  if (!asked) {
    GTEST_SKIP() << "needs setpriv, and a build that others may enter";
  }
  EXPECT_EQ(asked, true);
  for (const std::string words :
       {"run --limit 200", "sweep --device gpu:0,GPU-1", "tune --device all"}) {
    EXPECT_EQ(asks_sudo(words), true) << words;
  }
  for (const std::string words :
       {"run --limit 200 --device sim:duty", "sweep --patience 0.2 --device sim:duty",
        "run --limit 200 --device cpu", "run --limit 200 --device nonsense", "run",
        "sweep --measure-only", "tune --dry-run"}) {
    EXPECT_EQ(asks_sudo(words), false) << words;
  }
}

}  // namespace
}  // namespace halfwatt

#include "device/nvml_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "device/fake_machine.h"

namespace halfwatt {
namespace {

fake_nvml::Process process(std::uint32_t pid) {
  fake_nvml::Process made;
  made.pid = pid;
  return made;
}

std::optional<double> foreign(const FakeMachine& machine, std::function<bool(pid_t)> own = {}) {
  auto card = machine.open_card();
  EXPECT_TRUE(card) << card.error().message;
  if (own) {
    (*card)->set_own_processes(std::move(own));
  }
  return (*(*card)->read())[SignalId::foreign_processes];
}

fake_nvml::Script with(std::vector<fake_nvml::Process> processes) {
  fake_nvml::Script script = FakeNvml::cards(1);
  script.cards[0].processes = std::move(processes);
  return script;
}

TEST(NvmlProcesses, counts_all_but_its_own) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  for (const NvmlVariant variant :
       {NvmlVariant::modern, NvmlVariant::old, NvmlVariant::ancient}) {
    const FakeMachine machine(with({process(self), process(41), process(42)}), variant);
    EXPECT_EQ(foreign(machine), 2);
    EXPECT_EQ(foreign(machine, [](pid_t pid) { return pid == 41 || pid == 42; }), 1);
    EXPECT_EQ(foreign(machine, [](pid_t) { return true; }), 0);
  }
}

TEST(NvmlProcesses, takes_what_this_process_started_for_its_own) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_TRUE(descends_from(child, ::getpid()));
  EXPECT_FALSE(descends_from(::getpid(), child));
  EXPECT_FALSE(descends_from(1, ::getpid()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(descends_from(child, ::getpid()));
}

TEST(NvmlProcesses, counts_the_long_records_of_drivers_that_write_those) {
  for (std::uint32_t count = 0; count < 20; ++count) {
    std::vector<fake_nvml::Process> processes;
    for (std::uint32_t i = 0; i < count; ++i) {
      processes.push_back(process(1000 + i));
    }
    for (const bool long_records : {false, true}) {
      fake_nvml::Script script = with(processes);
      script.cards[0].process_records_535 = long_records;
      EXPECT_EQ(foreign(FakeMachine(script), [](pid_t pid) { return pid == 1000; }),
                count > 0 ? count - 1 : 0)
          << long_records;
    }
  }
}

TEST(NvmlProcesses, does_not_take_garbage_for_an_empty_card) {
  EXPECT_EQ(foreign(FakeMachine(with({process(0)}))), std::nullopt);
  EXPECT_EQ(foreign(FakeMachine(with({process(0xffffffff)}))), std::nullopt);
  EXPECT_EQ(foreign(FakeMachine(with({process(0xffffffff), process(41)}))), 1);
}

TEST(NvmlProcesses, are_unknown_where_a_container_hides_or_renumbers_them) {
  const FakeMachine machine(with({process(41)}));
  const auto link = machine.root() / "proc/self/ns/pid";
  std::filesystem::remove(link);
  EXPECT_EQ(foreign(machine), std::nullopt);
  std::filesystem::create_symlink("pid:[4026532201]", link);
  EXPECT_EQ(foreign(machine), std::nullopt);
  std::filesystem::remove(link);
  std::filesystem::create_symlink("pid:[4026531836]", link);
  EXPECT_EQ(foreign(machine), 1);
}

}  // namespace
}  // namespace halfwatt

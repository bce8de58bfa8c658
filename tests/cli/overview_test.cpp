#include "cli/overview.h"

#include <gtest/gtest.h>

#include "cli/program.h"

namespace halfwatt {
namespace {

TEST(Overview, names_cpu_and_cards_by_what_proc_tells) {
  const Folder root;
  std::filesystem::create_directories(root.path("proc/driver/nvidia/gpus/0000:01:00.0"));
  root.write(
      "proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Some CPU\nprocessor\t: 1\nmodel name\t: Some CPU\n");
  root.write("proc/driver/nvidia/gpus/0000:01:00.0/information",
             "Model: \t\t NVIDIA H200\nIRQ:   1\n");
  const Machine machine = look_at_machine({root.path("no-nvml.so"), root.path("")});
  EXPECT_EQ(machine.cpu, "Some CPU");
  EXPECT_EQ(machine.threads, 2U);
  EXPECT_EQ(machine.gpus, std::vector<std::string>{"NVIDIA H200"});
  EXPECT_NE(overview(machine, "./halfwatt").find("no-nvml.so"), std::string::npos);
  EXPECT_NE(overview(machine, "./halfwatt").find("GPU: NVIDIA H200"), std::string::npos);
  EXPECT_NE(overview(machine, "./halfwatt").find("./halfwatt analyze yours.csv"),
            std::string::npos);
}

TEST(Overview, leads_whoever_has_a_card_to_a_command_of_their_own) {
  Machine machine;
  machine.gpus = {"NVIDIA H200 (gpu:0)"};
  EXPECT_NE(
      overview(machine, "./halfwatt").find("./halfwatt tune --report tune.html -- python"),
      std::string::npos);
}

TEST(Overview, says_what_it_does_not_know) {
  const Folder root;
  const Machine machine = look_at_machine({root.path("no-nvml.so"), root.path("")});
  EXPECT_NE(overview(machine, "./halfwatt").find("a CPU of unknown model"), std::string::npos);
  EXPECT_NE(overview(machine, "./halfwatt").find("No NVIDIA GPU"), std::string::npos);
  EXPECT_NE(overview(machine, "./halfwatt").find("./halfwatt tune --workload"),
            std::string::npos);
}

}  // namespace
}  // namespace halfwatt

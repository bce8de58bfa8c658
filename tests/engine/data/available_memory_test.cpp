#include "engine/data/available_memory.h"

#include <gtest/gtest.h>

#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// A root folder that says what a machine would.
class AvailableMemory : public testing::Test {
 protected:
  AvailableMemory() { put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n"); }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(root.path(name).parent_path());
    (void)root.write(name, text);
  }
  Folder root;
};

TEST_F(AvailableMemory, is_what_the_kernel_calls_available) {
  EXPECT_EQ(available_memory(root.path()), 4'096'000);
}

TEST_F(AvailableMemory, is_unknown_where_nothing_says_it) {
  EXPECT_EQ(available_memory(root.path("proc/")), std::nullopt);
}

TEST_F(AvailableMemory, is_what_a_cgroup_above_leaves) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "100\n");
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "600000\n");
  EXPECT_EQ(available_memory(root.path()), 400'000);
}

TEST_F(AvailableMemory, counts_cached_files_that_nobody_uses_as_free) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "1000000\n");
  put("sys/fs/cgroup/memory.current", "600000\n");
  put("sys/fs/cgroup/memory.stat", "anon 100\nactive_file 7\ninactive_file 250000\n");
  EXPECT_EQ(available_memory(root.path()), 650'000);
}

TEST_F(AvailableMemory, knows_the_first_version_of_cgroups) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n");
  put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1500000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "9000000\n");
  EXPECT_EQ(available_memory(root.path()), 500'000);
}

TEST_F(AvailableMemory, is_nothing_where_a_group_is_over_its_limit) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "1000\n");
  put("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(available_memory(root.path()), 0);
}

TEST_F(AvailableMemory, is_known_of_this_machine) { EXPECT_GT(available_memory(), 0); }

}  // namespace
}  // namespace halfwatt

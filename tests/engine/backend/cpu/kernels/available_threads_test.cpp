#include "engine/backend/cpu/kernels/available_threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace halfwatt::cpu {
namespace {

namespace fs = std::filesystem;

/// A made-up root of a file system.
class Root {
 public:
  Root() {
    std::string name = (fs::temp_directory_path() / "halfwatt-threads-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

int processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

TEST(AvailableThreads, are_those_of_the_affinity_without_a_quota) {
  const Root root;
  EXPECT_EQ(available_threads(root.path()), processors());
  root.write("proc/self/cgroup", "0::/job\n");
  root.write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(available_threads(root.path()), processors());
}

TEST(AvailableThreads, follow_the_quota_of_a_group_above) {
  const Root root;
  root.write("proc/self/cgroup", "0::/slice/job\n");
  root.write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(available_threads(root.path()), 1);
}

TEST(AvailableThreads, follow_the_quota_of_cgroup_1) {
  const Root root;
  root.write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_threads(root.path()), 1);
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(available_threads(root.path()), processors());
}

TEST(AvailableThreads, follow_a_containers_quota_though_its_path_is_the_hosts) {
  const Root root;
  root.write("proc/self/cgroup", "0::/docker/0123\n");
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(available_threads(root.path()), 1);
}

TEST(AvailableThreads, are_never_none) {
  const Root root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(available_threads(root.path()), 1);
}

}  // namespace
}  // namespace halfwatt::cpu

#include "base/control_groups.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// A made-up machine, of which /proc/self/cgroup says `lines`.
class Machine {
 public:
  explicit Machine(const std::string& lines) {
    std::string name = (fs::temp_directory_path() / "halfwatt-groups-XXXXXX").string();
    root_ = mkdtemp(name.data());
    fs::create_directories(root_ / "proc/self");
    std::ofstream(root_ / "proc/self/cgroup") << lines;
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// As "VERSION FOLDER", the folder below the root.
  std::vector<std::string> groups(std::string_view controller) const {
    std::vector<std::string> all;
    for (const ControlGroup& group : control_groups(controller, root_)) {
      const std::string folder = group.folder.lexically_relative(root_).string();
      all.push_back(std::to_string(group.version) + " " + folder);
    }
    return all;
  }

 private:
  fs::path root_;
};

using Lines = std::vector<std::string>;

TEST(ControlGroups, are_the_own_one_and_all_above_it) {
  EXPECT_EQ(Machine("0::/slice/job\n").groups("memory"),
            (Lines{"2 sys/fs/cgroup/slice/job", "2 sys/fs/cgroup/slice", "2 sys/fs/cgroup/",
                   "2 sys/fs/cgroup/unified/slice/job", "2 sys/fs/cgroup/unified/slice",
                   "2 sys/fs/cgroup/unified/"}));
}

TEST(ControlGroups, of_version_1_are_those_of_the_controller) {
  const Machine machine("5:cpu,cpuacct:/x\n4:memory:/y\n1:name=systemd:/z\n");
  EXPECT_EQ(machine.groups("memory"),
            (Lines{"1 sys/fs/cgroup/memory/y", "1 sys/fs/cgroup/memory/"}));
  EXPECT_EQ(machine.groups("cpu"),
            (Lines{"1 sys/fs/cgroup/cpu/x", "1 sys/fs/cgroup/cpu/",
                   "1 sys/fs/cgroup/cpu,cpuacct/x", "1 sys/fs/cgroup/cpu,cpuacct/"}));
  EXPECT_EQ(machine.groups("cpuset"), Lines{}) << "cpu is not the whole of its name";
}

TEST(ControlGroups, have_names_with_colons) {
  EXPECT_EQ(Machine("4:memory:/a:b\n").groups("memory"),
            (Lines{"1 sys/fs/cgroup/memory/a:b", "1 sys/fs/cgroup/memory/"}));
}

TEST(ControlGroups, are_none_where_nothing_is_said) {
  EXPECT_EQ(Machine("").groups("cpu"), Lines{});
  EXPECT_EQ(Machine("nonsense\n4:memory\n").groups("memory"), Lines{});
  EXPECT_TRUE(control_groups("cpu", "/no such folder").empty());
}

TEST(ControlGroups, of_an_empty_path_are_the_root_of_the_mount) {
  EXPECT_EQ(Machine("4:memory:\n").groups("memory"), Lines{"1 sys/fs/cgroup/memory/"});
}

}  // namespace
}  // namespace halfwatt

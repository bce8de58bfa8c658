#include "device/rapl.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace halfwatt {
namespace {

/// A folder that stands for the root of a machine with powercap zones.
class RaplTest : public testing::Test {
 protected:
  RaplTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "halfwatt-rapl-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
  }
  ~RaplTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }

  std::filesystem::path file(const std::string& zone, const std::string& name) const {
    return root / "sys/class/powercap" / zone / name;
  }
  void write(const std::string& zone, const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(file(zone, name).parent_path());
    std::ofstream(file(zone, name)) << text << "\n";
  }
  void zone(const std::string& folder, const std::string& name, const std::string& energy_uj) {
    write(folder, "name", name);
    write(folder, "energy_uj", energy_uj);
    write(folder, "max_energy_range_uj", "262143328850");
  }
  std::unique_ptr<RaplCpu> opened() const {
    auto cpu = RaplCpu::open(clock, root);
    EXPECT_TRUE(cpu) << cpu.error().message;
    return std::move(*cpu);
  }

  std::filesystem::path root;
  VirtualClock clock;
};

TEST_F(RaplTest, sums_packages_and_memory_and_nothing_twice) {
  zone("intel-rapl:0", "package-0", "1000000");
  zone("intel-rapl:0:0", "core", "1000000");
  zone("intel-rapl:0:1", "dram", "1000000");
  zone("intel-rapl:1", "package-1", "1000000");
  zone("intel-rapl:2", "psys", "1000000");
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  const auto cpu = opened();
  EXPECT_EQ(cpu->zones(), (std::vector<std::string>{"package-0", "dram", "package-1"}));
  EXPECT_EQ(cpu->info().id.text(), "cpu");
  EXPECT_EQ(cpu->info().energy_method, EnergyMethod::counter);
  EXPECT_EQ(cpu->energy(), Joules(0));
  for (const char* each : {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:1",
                           "intel-rapl:2", "intel-rapl-mmio:0"}) {
    write(each, "energy_uj", "3000000");
  }
  EXPECT_EQ(cpu->energy(), Joules(6));
}

TEST_F(RaplTest, goes_on_where_a_counter_wraps) {
  zone("intel-rapl:0", "package-0", "262142328850");
  const auto cpu = opened();
  write("intel-rapl:0", "energy_uj", "2000000");
  EXPECT_NEAR(cpu->energy()->value(), 3, 1e-9);
  write("intel-rapl:0", "energy_uj", "5000000");
  EXPECT_NEAR(cpu->energy()->value(), 6, 1e-9);
}

TEST_F(RaplTest, does_not_guess_where_a_counter_wraps_that_does_not_say_it) {
  zone("intel-rapl:0", "package-0", "5000000");
  std::filesystem::remove(file("intel-rapl:0", "max_energy_range_uj"));
  const auto cpu = opened();
  write("intel-rapl:0", "energy_uj", "1000000");
  EXPECT_EQ(cpu->energy(), std::nullopt);
  const auto sample = cpu->read();
  ASSERT_FALSE(sample);
  EXPECT_NE(sample.error().message.find("went back"), std::string::npos);
}

TEST_F(RaplTest, tells_power_between_two_readings) {
  zone("intel-rapl:0", "package-0", "0");
  const auto cpu = opened();
  EXPECT_EQ(cpu->read()->operator[](SignalId::average_power), std::nullopt);
  clock.sleep_until(Seconds(2));
  write("intel-rapl:0", "energy_uj", "130000000");
  EXPECT_NEAR(cpu->read()->operator[](SignalId::average_power).value(), 65, 1e-9);
}

TEST_F(RaplTest, says_that_there_are_no_zones) {
  for (const bool folder : {false, true}) {
    if (folder) {
      std::filesystem::create_directories(root / "sys/class/powercap");
    }
    const auto cpu = RaplCpu::open(clock, root);
    ASSERT_FALSE(cpu);
    EXPECT_EQ(cpu.error().kind, ErrorKind::device);
    EXPECT_NE(cpu.error().message.find("no energy counter"), std::string::npos);
  }
}

TEST_F(RaplTest, names_the_file_that_it_may_not_read_and_the_way_out) {
  zone("intel-rapl:0", "package-0", "0");
  std::filesystem::permissions(file("intel-rapl:0", "energy_uj"), std::filesystem::perms::none);
  std::filesystem::permissions(root, std::filesystem::perms(0755));
  constexpr uid_t kNobody = 65534;
  const bool is_root = ::geteuid() == 0;  // who may read everything
  if (is_root && ::seteuid(kNobody) != 0) {
    GTEST_SKIP() << "root, and no other user to become";
  }
  const auto cpu = RaplCpu::open(clock, root);
  EXPECT_TRUE(!is_root || ::seteuid(0) == 0);
  ASSERT_FALSE(cpu);
  EXPECT_NE(cpu.error().message.find("no permission to read"), std::string::npos);
  EXPECT_NE(cpu.error().message.find("energy_uj; needed root"), std::string::npos);
}

TEST_F(RaplTest, says_which_file_gives_no_number) {
  zone("intel-rapl:0", "package-0", "nonsense");
  const auto cpu = RaplCpu::open(clock, root);
  ASSERT_FALSE(cpu);
  EXPECT_NE(cpu.error().message.find("energy_uj gives no number"), std::string::npos);
  EXPECT_EQ(cpu.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

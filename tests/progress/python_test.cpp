// The Python module writes the page as the header does.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/clock.h"
#include "cli/program.h"
#include "progress/job.h"
#include "progress/page.h"

namespace halfwatt {
namespace {

class PythonModule : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Job({"python3", "-c", ""}, {}).wait() != 0) {
      GTEST_SKIP() << "python3 is not installed";
    }
  }
  /// Runs a script that has imported the module: its exit status.
  int run(const std::string& script, Environment more = {}) const {
    more.emplace_back("PYTHONPATH", "python");
    more.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
    more.emplace_back("HALFWATT_PROGRESS", page_->path().string());
    return Job({"python3", "-c", "from halfwatt_progress import step\nimport os\n" + script},
               more)
        .wait();
  }
  SourceReading read() { return page_->read(SteadyClock().now()); }

  Folder folder_;
  std::unique_ptr<Page> page_ = *Page::create(folder_.path(""));
};

TEST_F(PythonModule, tells_steps_items_and_losses) {
  const Seconds before = SteadyClock().now();
  ASSERT_EQ(run("for i in range(10): step(items=32, loss=1 / (i + 1))"), 0);
  const SourceReading reading = read();
  EXPECT_EQ(reading.steps, 10);
  EXPECT_EQ(reading.items, 320);
  EXPECT_EQ(reading.losses.told, 10u);
  EXPECT_EQ(reading.losses.changed, 9u);
  EXPECT_EQ(reading.losses.last, 0.1);
  EXPECT_GT(reading.at, before);
  EXPECT_LE(reading.at, SteadyClock().now());
}

TEST_F(PythonModule, tells_a_loss_that_is_not_finite) {
  ASSERT_EQ(run("step(loss=float('nan'))"), 0);
  EXPECT_EQ(read().losses.dead, 1u);
  EXPECT_TRUE(std::isnan(*read().losses.last));
}

TEST_F(PythonModule, counts_on_where_a_program_in_C_has_stopped_and_the_other_way_round) {
  const Environment environment = {{"HALFWATT_PROGRESS", page_->path().string()}};
  ASSERT_EQ(write_steps("count", 5, environment), 0);
  ASSERT_EQ(run("step()\nstep(2)"), 0);
  ASSERT_EQ(write_steps("count", 5, environment), 0);
  EXPECT_EQ(read().steps, 13);
  EXPECT_EQ(read().items, 20);
}

TEST_F(PythonModule, survives_a_fork) {
  ASSERT_EQ(run("step(3)\n"
                "child = os.fork()\n"
                "step(10)\n"
                "if child == 0: os._exit(0)\n"
                "os.waitpid(child, 0)\n"
                "step(100)"),
            0);
  EXPECT_EQ(read().steps, 3 + 10 + 10 + 100);
}

TEST_F(PythonModule, counts_threads) {
  ASSERT_EQ(run("import threading\n"
                "def work():\n"
                "  for i in range(1000): step(items=1)\n"
                "threads = [threading.Thread(target=work) for i in range(4)]\n"
                "for t in threads: t.start()\n"
                "for t in threads: t.join()"),
            0);
  EXPECT_EQ(read().steps, 4000);
  EXPECT_EQ(read().items, 4000);
}

TEST_F(PythonModule, keeps_ranks_apart) {
  ASSERT_EQ(run("step(7)", {{"LOCAL_RANK", "0"}, {"RANK", "8"}}), 0);
  ASSERT_EQ(run("step(5)", {{"RANK", "1"}}), 0);
  EXPECT_EQ(read().steps, 5);
}

TEST_F(PythonModule, never_harms_the_job) {
  EXPECT_EQ(run("step(loss='no number')\nstep(items='none')\nstep('x')\nstep(None)\nstep()"),
            0);
  EXPECT_EQ(read().steps, 3);
  for (const char* path : {"", "/nowhere", "/dev/null", "python"}) {
    EXPECT_EQ(run("step()\nstep()", {}), 0) << path;
    EXPECT_EQ(Job({"env", std::string("HALFWATT_PROGRESS=") + path, "PYTHONPATH=python",
                   "PYTHONDONTWRITEBYTECODE=1", "python3", "-c",
                   "from halfwatt_progress import step\nstep()\nstep(loss=1)"},
                  {})
                  .wait(),
              0)
        << path;
  }
}

TEST_F(PythonModule, leaves_a_page_alone_that_is_not_of_its_version) {
  const std::string path = folder_.write("other.page", std::string(16384, 'x'));
  ASSERT_EQ(
      Job({"env", "HALFWATT_PROGRESS=" + path, "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1",
           "python3", "-c", "from halfwatt_progress import step\nstep()"},
          {})
          .wait(),
      0);
  EXPECT_EQ(read_file(path), std::string(16384, 'x'));
}

}  // namespace
}  // namespace halfwatt

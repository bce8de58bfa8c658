#include "progress/page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <halfwatt_progress.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <list>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/program.h"
#include "progress/job.h"

namespace halfwatt {
namespace {

class PageTest : public ::testing::Test {
 protected:
  SourceReading read() { return page_->read(SteadyClock().now()); }
  Environment environment(int rank = 0) const {
    return {{"HALFWATT_PROGRESS", page_->path().string()}, {"RANK", std::to_string(rank)}};
  }
  /// The job's view of the page.
  halfwatt_page* memory() {
    const int file = ::open(page_->path().c_str(), O_RDWR);
    void* mapped =
        ::mmap(nullptr, sizeof(halfwatt_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return static_cast<halfwatt_page*>(mapped);
  }
  /// Waits until so many steps were counted.
  SourceReading wait_for(double steps) {
    SteadyClock clock;
    const Seconds give_up = clock.now() + Seconds(30);
    SourceReading reading = read();
    while (reading.steps < steps && clock.now() < give_up) {
      clock.sleep_until(clock.now() + Seconds(0.001));
      reading = read();
    }
    EXPECT_GE(reading.steps, steps);
    return reading;
  }

  Folder folder_;
  std::unique_ptr<Page> page_ = *Page::create(folder_.path(""));
};

TEST_F(PageTest, says_nothing_until_a_job_steps) {
  EXPECT_FALSE(read().has_spoken);
  EXPECT_EQ(read().items, std::nullopt);
}

TEST_F(PageTest, counts_steps_items_and_losses_of_a_job) {
  const Seconds before = SteadyClock().now();
  ASSERT_EQ(write_steps("count", 1000, environment()), 0);
  const SourceReading reading = read();
  EXPECT_TRUE(reading.has_spoken);
  EXPECT_EQ(reading.steps, 1000);
  EXPECT_EQ(reading.items, 2000);
  EXPECT_EQ(reading.losses.told, 1000u);
  EXPECT_EQ(reading.losses.changed, 999u);
  EXPECT_EQ(reading.losses.dead, 0u);
  EXPECT_EQ(reading.losses.last, 1 + 0.5 * 999);
  EXPECT_GT(reading.at, before);
  EXPECT_LE(reading.at, SteadyClock().now());
}

TEST_F(PageTest, sees_losses_that_are_not_finite_even_between_two_looks) {
  ASSERT_EQ(write_steps("nan", 3, environment()), 0);
  ASSERT_EQ(write_steps("count", 3, environment()), 0);
  EXPECT_EQ(read().losses.dead, 3u);
  EXPECT_EQ(read().losses.last, 2);
}

TEST_F(PageTest, counts_on_when_the_same_rank_comes_again_and_again) {
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(write_steps("count", 10, environment()), 0);
    EXPECT_EQ(read().steps, 10 * i);
  }
  EXPECT_EQ(memory()->slots[1].owner, 0u) << "one slot is enough for one after the other";
}

TEST_F(PageTest, counts_steps_before_a_fork_in_the_child_and_after_it) {
  ASSERT_EQ(write_steps("fork", 100, environment()), 0);
  EXPECT_EQ(read().steps, 300);
  EXPECT_EQ(read().items, 600);
}

TEST_F(PageTest, counts_the_steps_of_threads) {
  ASSERT_EQ(write_steps("threads", 5000, environment()), 0);
  // A thread that meets another one at the page tells its first steps later, with its items.
  EXPECT_EQ(read().steps, 20000);
  EXPECT_EQ(read().items, 40000);
}

TEST_F(PageTest, gives_the_steps_of_the_slowest_of_8_ranks_and_the_items_of_all) {
  std::list<Job> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.emplace_back(std::vector<std::string>{beside_halfwatt("progress_writer"), "count",
                                                std::to_string(1000 + rank)},
                       environment(rank));
  }
  for (Job& rank : ranks) {
    EXPECT_EQ(rank.wait(), 0);
  }
  const SourceReading reading = read();
  EXPECT_EQ(reading.steps, 1000);
  EXPECT_EQ(reading.items, 2 * (8 * 1000 + 28));
}

TEST_F(PageTest, never_goes_back_while_a_job_writes) {
  const Job job({beside_halfwatt("progress_writer"), "forever", "1"}, environment());
  SourceReading last = wait_for(1);
  for (int i = 0; i < 20000; ++i) {
    const SourceReading next = read();
    ASSERT_GE(next.steps, last.steps);
    ASSERT_GE(next.at, last.at);
    // Items are written with their step: each whole reading has two a step.
    ASSERT_EQ(next.items, 2 * next.steps);
    last = next;
  }
}

TEST_F(PageTest, keeps_what_was_written_when_the_writer_is_killed_and_lets_another_go_on) {
  double least = 1;
  for (int i = 0; i < 50; ++i) {
    Job job({beside_halfwatt("progress_writer"), "forever", "1"}, environment());
    wait_for(least);
    job.kill(SIGKILL);
    job.wait();
    const SourceReading reading = read();
    EXPECT_GE(reading.steps, least);
    least = reading.steps + 1;
  }
}

TEST_F(PageTest, keeps_the_last_whole_reading_of_a_writer_killed_in_mid_write) {
  ASSERT_EQ(write_steps("count", 10, environment()), 0);
  EXPECT_EQ(read().steps, 10);
  halfwatt_page_slot& slot = memory()->slots[0];
  slot.sequence += 1;
  slot.steps = 11;
  EXPECT_EQ(read().steps, 10);
  // Whoever counts on mends it.
  ASSERT_EQ(write_steps("count", 5, environment()), 0);
  EXPECT_EQ(read().steps, 16);
}

TEST_F(PageTest, goes_on_after_a_restart_and_ignores_writers_of_before) {
  ASSERT_EQ(write_steps("count", 10, environment(0)), 0);
  ASSERT_EQ(write_steps("count", 12, environment(1)), 0);
  EXPECT_EQ(read().steps, 10);
  page_->restart();
  EXPECT_EQ(read().steps, 10);
  memory()->slots[0].steps = 1000;  // a straggler
  EXPECT_EQ(read().steps, 10);
  ASSERT_EQ(write_steps("count", 5, environment(0)), 0);
  const SourceReading reading = read();
  EXPECT_EQ(reading.steps, 15);
  EXPECT_EQ(reading.items, 2 * (10 + 12 + 5));
}

TEST_F(PageTest, holds_for_more_restarts_than_it_has_slots) {
  for (int i = 1; i <= 150; ++i) {
    ASSERT_EQ(write_steps("count", 1, environment(0)), 0);
    ASSERT_EQ(write_steps("count", 1, environment(1)), 0);
    ASSERT_EQ(read().steps, i);
    page_->restart();
  }
  EXPECT_FALSE(page_->is_full());
}

TEST_F(PageTest, is_left_alone_by_a_job_that_knows_another_version_or_size) {
  memory()->header.version = 2;
  ASSERT_EQ(write_steps("count", 10, environment()), 0);
  EXPECT_FALSE(read().has_spoken);
  memory()->header.version = 1;
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, sizeof(halfwatt_page) + 1}) {
    const std::string path = folder_.write("other.page", std::string(size, 'x'));
    EXPECT_EQ(write_steps("count", 10, {{"HALFWATT_PROGRESS", path}}), 0);
    EXPECT_EQ(read_file(path), std::string(size, 'x'));
  }
  EXPECT_EQ(write_steps("count", 10, {{"HALFWATT_PROGRESS", folder_.path("missing")}}), 0);
}

TEST_F(PageTest, never_makes_a_job_wait_for_whoever_holds_it) {
  const int file = ::open(page_->path().c_str(), O_RDWR);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  ASSERT_EQ(write_steps("count", 10, environment()), 0);
  ::close(file);
  EXPECT_FALSE(read().has_spoken);
}

TEST_F(PageTest, says_when_no_slot_is_left) {
  halfwatt_page* page = memory();
  for (halfwatt_page_slot& slot : page->slots) {
    EXPECT_FALSE(page_->is_full());
    slot.owner = 1;
    slot.generation = 1;
  }
  EXPECT_TRUE(page_->is_full());
  EXPECT_EQ(write_steps("count", 10, environment()), 0);
}

TEST_F(PageTest, survives_any_bytes_in_it) {
  Rng rng(7);
  auto* bytes = reinterpret_cast<unsigned char*>(memory());
  double last = 0;
  for (int i = 0; i < 2000; ++i) {
    for (int k = 0; k < 200; ++k) {
      const auto at = sizeof(halfwatt_page_header) +
                      rng.next() % (sizeof(halfwatt_page) - sizeof(halfwatt_page_header));
      bytes[at] = static_cast<unsigned char>(k % 2 == 0 ? rng.next() : rng.next() % 2);
    }
    const SourceReading reading = read();
    ASSERT_GE(reading.steps, last);
    ASSERT_LE(reading.at, SteadyClock().now());
    last = reading.steps;
  }
}

TEST_F(PageTest, is_gone_from_the_disk_with_its_reader) {
  const auto path = page_->path();
  EXPECT_TRUE(std::filesystem::exists(path));
  page_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Page, is_not_made_in_a_folder_that_is_missing) {
  const Folder folder;
  const auto page = Page::create(folder.path("missing"));
  ASSERT_FALSE(page.has_value());
  EXPECT_NE(page.error().message.find("No such file"), std::string::npos);
  EXPECT_NE(page.error().message.find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

#include "guard/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "guard/cards.h"
#include "guard/folders.h"

namespace halfwatt {
namespace {

const LoadId kLoad{"boot-1", "4711"};
const JournalEntry kEntry{"GPU-1", kLoad, Watts(350), true, Watts(200), Watts(300), {12, 34}};

TEST(Journal, reads_back_the_entry_it_writes) {
  const Cards folder(0);
  const Journal journal(folder.state());
  JournalEntry sparse{"GPU-2", {"boot-1", {}}, Watts(149.999), {}, {}, {}, {}};
  for (const JournalEntry& entry : {kEntry, sparse}) {
    ASSERT_TRUE(journal.write(entry));
    const auto back = journal.read(entry.card);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, entry);
  }
  EXPECT_EQ(journal.cards(), (std::vector<std::string>{"GPU-1", "GPU-2"}));
}

TEST(Journal, has_no_entry_once_it_is_closed) {
  const Cards folder(0);
  const Journal journal(folder.state());
  ASSERT_TRUE(journal.write(kEntry));
  ASSERT_TRUE(journal.close("GPU-1"));
  EXPECT_TRUE(journal.close("GPU-1")) << "harmless without one";
  EXPECT_EQ(*journal.read("GPU-1"), std::nullopt);
  EXPECT_TRUE(journal.cards().empty());
}

TEST(Journal, keeps_the_found_limit_when_the_disk_is_full) {
  const Cards folder(0);
  const int status = end_of(start_child([&] {
    const Journal journal(folder.state());
    if (!journal.write(kEntry)) {
      return 1;
    }
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);  // every write fails, as on a full disk
    JournalEntry next = kEntry;
    next.found = Watts(1);
    const auto failed = journal.write(next);
    return !failed && failed.error().message.find("--state-dir") != std::string::npos ? 0 : 2;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*Journal(folder.state()).read("GPU-1"), kEntry);
}

TEST(Journal, takes_no_half_written_entry_for_one) {
  const Cards folder(0);
  const Journal journal(folder.state());
  ASSERT_TRUE(journal.write(kEntry));
  std::ofstream(folder.state() / "GPU-1.json") << R"({"journal":1,"card":"GPU-1","bo)";
  const auto read = journal.read("GPU-1");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("GPU-1.json"), std::string::npos);
}

TEST(Journal, refuses_a_folder_that_is_a_link) {
  const Cards folder(0);
  std::filesystem::create_symlink(folder.folder(), folder.state());
  EXPECT_FALSE(Journal(folder.state()).write(kEntry));
}

TEST(Journal, lets_everybody_read_what_root_wrote) {
  const Cards folder(0);
  ASSERT_TRUE(Journal(folder.state()).write(kEntry));
  struct stat status {};
  ASSERT_EQ(::stat((folder.state() / "GPU-1.json").c_str(), &status), 0);
  EXPECT_EQ(
      status.st_mode & 0777U, 0644U & ~[] {
        const mode_t mask = ::umask(0);
        ::umask(mask);
        return mask;
      }());
}

TEST(Journal, tells_one_boot_and_one_loaded_driver_from_the_next) {
  const Cards root(0);
  const auto boot = root.folder() / "proc/sys/kernel/random";
  std::filesystem::create_directories(boot);
  std::ofstream(boot / "boot_id") << "abc\n";
  EXPECT_EQ(current_load(root.folder()), (LoadId{"abc", {}}));
  std::filesystem::create_directories(root.folder() / "sys/module/nvidia");
  EXPECT_TRUE(current_load(root.folder()).driver);
}

TEST(FileName, is_plain_for_a_uuid_and_gives_any_name_back) {
  EXPECT_EQ(file_name("GPU-8a3c"), "GPU-8a3c");
  for (const std::string name : {"limit-file:/tmp/a b", "..", "%41", ""}) {
    EXPECT_EQ(file_name(name).find('/'), std::string::npos);
    EXPECT_NE(file_name(name), "..");
    EXPECT_EQ(card_name(file_name(name)), name);
  }
}

}  // namespace
}  // namespace halfwatt

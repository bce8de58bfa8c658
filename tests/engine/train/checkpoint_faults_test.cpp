// Saves that fail or are killed: the last good checkpoint loads, whatever happened. Each fault
// is in a process of its own.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "engine/formats/folder.h"
#include "engine/train/checkpoint_folder.h"
#include "engine/train/cut_log.h"
#include "engine/train/small_training.h"

namespace {

/// What befalls one of the calls that a save makes of the operating system.
struct Fault {
  enum class Kind { none, killed_before, killed_after, killed_half_way, error };
  Kind kind = Kind::none;
  int call = 0;   ///< which, from 1
  int error = 0;  ///< what the call gives
};

Fault fault;
int calls = 0;

// Whether the call at hand is to fail instead.
bool befalls() {
  ++calls;
  if (calls != fault.call) {
    return false;
  }
  if (fault.kind == Fault::Kind::killed_before) {
    ::raise(SIGKILL);
  }
  errno = fault.error;
  return fault.kind == Fault::Kind::error;
}

template <class T>
T after(T result) {
  if (calls == fault.call && fault.kind == Fault::Kind::killed_after) {
    ::raise(SIGKILL);
  }
  return result;
}

}  // namespace

// In place of the C library's, for all that this program links.
extern "C" ssize_t write(int descriptor, const void* data, size_t bytes) {
  if (befalls()) {
    return -1;
  }
  if (calls == fault.call && fault.kind == Fault::Kind::killed_half_way) {
    ::syscall(SYS_write, descriptor, data, bytes / 2);
    ::raise(SIGKILL);
  }
  return after(::syscall(SYS_write, descriptor, data, bytes));
}

extern "C" int fsync(int descriptor) {
  return befalls() ? -1 : after(static_cast<int>(::syscall(SYS_fsync, descriptor)));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  return befalls() ? -1
                   : after(static_cast<int>(
                         ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)));
}

extern "C" int symlink(const char* target, const char* link) noexcept {
  return befalls() ? -1
                   : after(static_cast<int>(::syscall(SYS_symlinkat, target, AT_FDCWD, link)));
}

namespace halfwatt {
namespace {

constexpr int kSaved = 0;
constexpr int kFailed = 1;

class CheckpointFaults : public testing::Test {
 protected:
  void SetUp() override {
    training_.steps(images_, 0, 3);
    auto folder = CheckpointFolder::open(path(), {});
    ASSERT_TRUE(folder);
    ASSERT_TRUE(folder->save(*training_.trainer, {0, 48, 0.5}));
    old_.trainer->restore(path() / "last.safetensors").value();
    training_.steps(images_, 3, 5);
    ASSERT_EQ(::chmod(root_.path().c_str(), 0755), 0);
  }

  std::filesystem::path path() const { return root_.path("run"); }

  // How a save of step 5 ends in a process of its own, which `before` makes ready for it:
  // kSaved, kFailed, or minus the signal that killed it.
  template <class Before>
  int save_in_child(const Before& before) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto folder = CheckpointFolder::open(path(), {});
      before();
      calls = 0;
      const bool saved = folder && folder->save(*training_.trainer, {0, 80, 0.75});
      ::_exit(saved ? kSaved : kFailed);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  int save_with(const Fault& what) {
    return save_in_child([&] { fault = what; });
  }

  // What the folder leads to is the old checkpoint or the whole new one, the best one too, and
  // nothing half-written stays.
  void expect_good(bool must_be_new, const std::string& what) {
    ++faults_;
    auto folder = CheckpointFolder::open(path(), {});
    ASSERT_TRUE(folder) << what << ": " << folder.error().message;
    for (const auto& file : {folder->last(), folder->best()}) {
      ASSERT_TRUE(file) << what;
      const auto resumed = reader_.trainer->restore(*file);
      ASSERT_TRUE(resumed) << what << ": " << resumed.error().message;
      const bool is_new = reader_.trainer->attempts() == 5;
      EXPECT_TRUE(is_new || reader_.trainer->attempts() == 3) << what;
      EXPECT_TRUE(is_new || !must_be_new) << what;
      EXPECT_EQ(resumed->position.image, is_new ? 80 : 48) << what;
      Trainer& expected = is_new ? *training_.trainer : *old_.trainer;
      EXPECT_EQ(differing(*reader_.trainer, expected), "") << what;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".halfwatt-")) << what;
    }
  }
  void begin_again() {
    std::filesystem::remove_all(path());
    auto folder = CheckpointFolder::open(path(), {});
    ASSERT_TRUE(folder && folder->save(*old_.trainer, {0, 48, 0.5}));
  }

  const Folder root_;
  ImageSet images_ = digits();
  SmallTraining training_{small_recipe("amp-fp16")};
  SmallTraining old_{small_recipe("amp-fp16")};     ///< what was saved before
  SmallTraining reader_{small_recipe("amp-fp16")};  ///< what loads
  int faults_ = 0;
};

TEST_F(CheckpointFaults, kills_and_errors_at_every_call_leave_a_good_checkpoint) {
  const int all = [&] {
    int pipes[2];
    EXPECT_EQ(::pipe(pipes), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto folder = CheckpointFolder::open(path(), {});
      calls = 0;
      const bool saved = folder && folder->save(*training_.trainer, {0, 80, 0.75});
      const int counted = saved ? calls : 0;
      ::syscall(SYS_write, pipes[1], &counted, sizeof(counted));
      ::_exit(0);
    }
    int counted = 0;
    EXPECT_EQ(::read(pipes[0], &counted, sizeof(counted)),
              static_cast<ssize_t>(sizeof(counted)));
    ::waitpid(child, nullptr, 0);
    ::close(pipes[0]);
    ::close(pipes[1]);
    return counted;
  }();
  ASSERT_GT(all, 9) << "writes, then fsync, rename, fsync, and the same of two links";
  // Of the many writes only some; every call behind them.
  std::vector<int> places;
  for (int call = 1; call <= all; call += call < all - 12 ? 7 : 1) {
    places.push_back(call);
  }
  for (const int call : places) {
    const std::string where = "call " + std::to_string(call) + " of " + std::to_string(all);
    for (const auto kind : {Fault::Kind::killed_before, Fault::Kind::killed_after,
                            Fault::Kind::killed_half_way}) {
      begin_again();
      const int ended = save_with({kind, call, 0});
      EXPECT_TRUE(ended == -SIGKILL ||
                  (kind == Fault::Kind::killed_half_way && ended == kSaved))
          << where << " " << ended;
      expect_good(ended == kSaved, where + " killed");
    }
    for (const int error : {ENOSPC, EROFS, EIO}) {
      begin_again();
      const int ended = save_with({Fault::Kind::error, call, error});
      // A folder that cannot be flushed is no failure: some file systems flush none.
      expect_good(ended == kSaved, where + " error " + std::to_string(error));
    }
  }
  EXPECT_GE(faults_, 100);
  RecordProperty("faults", faults_);
  begin_again();
  EXPECT_EQ(save_with({}), kSaved);
  expect_good(true, "no fault");
}

TEST_F(CheckpointFaults, a_disk_that_is_full_at_any_size_leaves_the_last_good_checkpoint) {
  const auto whole = std::filesystem::file_size(path() / "last.safetensors");
  constexpr int kSizes = 25;
  for (int size = 0; size < kSizes; ++size) {
    const int ended = save_in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{whole * static_cast<rlim_t>(size) / kSizes, RLIM_INFINITY};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    });
    EXPECT_EQ(ended, kFailed);
    expect_good(false, "a limit of " + std::to_string(size) + "/25 of the file");
    EXPECT_EQ(reader_.trainer->attempts(), 3);
  }
}

TEST_F(CheckpointFaults, a_folder_that_is_read_only_leaves_the_last_good_checkpoint) {
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(path().c_str(), 0555), 0);
  const int ended = save_in_child([&] {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) {
      ::_exit(99);
    }
  });
  ASSERT_EQ(::chmod(path().c_str(), 0755), 0);
  EXPECT_EQ(ended, kFailed);
  expect_good(false, "read-only");
  EXPECT_EQ(reader_.trainer->attempts(), 3);
}

// Forty steps of two micro-batches, from where the folder says on; a checkpoint, often in the
// midst of a step, at every third micro-batch, and a log of the steps.
bool live(const std::filesystem::path& path, const ImageSet& images) {
  TrainRecipe recipe = small_recipe("amp-fp16");
  recipe.micro_batches = 2;
  recipe.model.drop_path = 0.2;
  recipe.optimizer.average = 0.9;
  SmallTraining training(recipe);
  auto folder = CheckpointFolder::open(path, {});
  TrainPosition position;
  if (const auto last = folder->last()) {
    position = training.trainer->restore(*last).value().position;
  }
  if (!cut_log(path / "log", training.trainer->attempts())) {
    return false;
  }
  std::ofstream log(path / "log", std::ios::app);
  while (training.trainer->attempts() < 40) {
    const auto report = training.trainer->micro_step(some(images, position.image, 16)).value();
    position.image += 16;
    if (report) {
      log << R"({"attempt":)" << report->attempt << R"(,"loss":)" << report->loss << "}\n"
          << std::flush;
    }
    if (position.image % 48 == 0 && !folder->save(*training.trainer, position)) {
      return false;
    }
  }
  return folder->save(*training.trainer, position).has_value();
}

TEST(CheckpointLives, a_training_that_is_killed_again_and_again_ends_as_one_that_is_not) {
  const ImageSet images = digits();
  const Folder root;
  int killed = 0;
  const auto live_in_child = [&](const std::string& name, const Fault& what) {
    const pid_t child = ::fork();
    if (child == 0) {
      fault = what;
      calls = 0;
      ::_exit(live(root.path(name), images) ? kSaved : kFailed);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == kSaved);
  };
  live_in_child("whole", {});
  constexpr int kLives = 30;
  for (int life = 0; life < kLives; ++life) {
    // A checkpoint takes some hundred calls: up to four are written in a life.
    const int call = 1 + life * 7919 % 401;
    const auto kind = life % 2 == 0 ? Fault::Kind::killed_after : Fault::Kind::killed_half_way;
    live_in_child("killed", {kind, call, 0});
  }
  live_in_child("killed", {});
  RecordProperty("killed", killed);
  EXPECT_GE(killed, 20);
  const auto last = [&](const std::string& name) {
    return read_file(root.path(name) / "last.safetensors");
  };
  EXPECT_TRUE(last("whole") == last("killed")) << "every byte of the last checkpoint";
  EXPECT_EQ(read_file(root.path("whole") / "log"), read_file(root.path("killed") / "log"));
  EXPECT_FALSE(last("whole").empty());
}

}  // namespace
}  // namespace halfwatt

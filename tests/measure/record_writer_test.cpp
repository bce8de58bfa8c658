#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "measure/record.h"
#include "measure/record_json.h"
#include "measure/sample_record.h"

namespace {

/// What was synced, since a test cannot pull the plug.
struct Synced {
  std::vector<off_t> sizes;  ///< of regular files, when fsync was called
  int fail_with = 0;         ///< errno of the calls to come; 0: they succeed
};
Synced synced;

}  // namespace

/// Stands before the one of the C library, for the whole test program.
extern "C" int fsync(int descriptor) {
  struct stat seen {};
  if (fstat(descriptor, &seen) == 0 && S_ISREG(seen.st_mode)) {
    synced.sizes.push_back(seen.st_size);
    if (synced.fail_with != 0) {
      errno = synced.fail_with;
      return -1;
    }
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, and a record in it.
class RecordWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "halfwatt_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    path = folder / "run.jsonl";
    synced = {};
  }
  void TearDown() override { fs::remove_all(folder); }

  /// Makes a record of `windows` windows.
  void write(int windows) {
    auto writer = RecordWriter::create(path, full_header());
    ASSERT_TRUE(writer) << writer.error().message;
    for (int i = 0; i < windows; ++i) {
      ASSERT_TRUE(writer->append(full_measurement()));
    }
  }
  void add(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }
  std::string content() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Why `header` cannot resume the record.
  std::string refusal(const RecordHeader& header) const {
    Record record;
    const auto writer = RecordWriter::resume(path, header, record);
    return writer ? "no error" : writer.error().message;
  }
  std::string cannot_resume(const std::string& why) const {
    return "cannot resume " + path.string() + ": " + why;
  }

  fs::path folder;
  fs::path path;
};

/// Files may grow to `bytes` while it lives: stands for a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &old_), 0);
    const rlimit small{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

/// Somebody without root's rights while it lives.
class Nobody {
 public:
  Nobody() {
    constexpr uid_t kNobody = 65534;
    if (root_) {
      EXPECT_EQ(seteuid(kNobody), 0);
    }
  }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
  ~Nobody() {
    if (root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  bool root_ = geteuid() == 0;
};

TEST_F(RecordWriterTest, writes_what_reads_back) {
  write(3);
  EXPECT_EQ(content(), record_text(3));
  const auto record = read_record(path);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->measurements.size(), 3U);
}

TEST_F(RecordWriterTest, has_every_line_on_disk_before_the_next_window_begins) {
  auto writer = RecordWriter::create(path, full_header());
  ASSERT_TRUE(writer);
  for (std::size_t lines = 1; lines < 5; ++lines) {
    ASSERT_EQ(synced.sizes.size(), lines);
    EXPECT_EQ(synced.sizes.back(), static_cast<off_t>(fs::file_size(path)));
    ASSERT_TRUE(writer->append(full_measurement()));
  }
}

TEST_F(RecordWriterTest, overwrites_no_file) {
  write(1);
  const auto writer = RecordWriter::create(path, full_header());
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::bad_input);
  EXPECT_EQ(
      writer.error().message,
      path.string() + " exists; --resume goes on with it, another --record leaves it alone");
  EXPECT_EQ(content(), record_text(1));
}

TEST_F(RecordWriterTest, says_why_a_file_cannot_be_made) {
  const fs::path missing = folder / "missing" / "run.jsonl";
  EXPECT_EQ(RecordWriter::create(missing, full_header()).error().message,
            "cannot write " + missing.string() + ": No such file or directory");
  add("a file");
  const fs::path below_a_file = path / "run.jsonl";
  EXPECT_EQ(RecordWriter::create(below_a_file, full_header()).error().message,
            "cannot write " + below_a_file.string() + ": Not a directory");
}

TEST_F(RecordWriterTest, says_that_a_folder_is_read_only) {
  fs::permissions(folder, fs::perms(0555));
  std::string message;
  {
    const Nobody nobody;
    message = RecordWriter::create(path, full_header()).error().message;
  }
  fs::permissions(folder, fs::perms(0755));
  EXPECT_EQ(message, "cannot write " + path.string() + ": Permission denied");
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RecordWriterTest, says_that_a_file_is_read_only) {
  write(1);
  fs::permissions(folder, fs::perms(0755));
  fs::permissions(path, fs::perms(0444));
  std::string message;
  {
    const Nobody nobody;
    message = refusal(full_header());
  }
  EXPECT_EQ(message, "cannot write " + path.string() + ": Permission denied");
  EXPECT_EQ(content(), record_text(1));
}

TEST_F(RecordWriterTest, ends_with_the_last_whole_line_when_the_disk_is_full) {
  auto writer = RecordWriter::create(path, full_header());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(full_measurement()));
  {
    const FullDisk disk(fs::file_size(path) + 100);
    const auto result = writer->append(full_measurement());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::bad_input);
    EXPECT_EQ(
        result.error().message,
        "cannot write " + path.string() +
            ": File too large; what was recorded before stands, and --resume goes on from "
            "there");
  }
  EXPECT_EQ(content(), record_text(1));
  ASSERT_TRUE(writer->append(full_measurement()));  // there is room again
  EXPECT_EQ(content(), record_text(2));
}

TEST_F(RecordWriterTest, leaves_no_file_where_the_disk_is_too_full_for_a_header) {
  const FullDisk disk(10);
  EXPECT_EQ(RecordWriter::create(path, full_header()).error().message,
            "cannot write " + path.string() + ": File too large");
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RecordWriterTest, takes_back_a_line_that_did_not_reach_the_disk) {
  auto writer = RecordWriter::create(path, full_header());
  ASSERT_TRUE(writer);
  synced.fail_with = EIO;
  const auto result = writer->append(full_measurement());
  synced.fail_with = 0;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "cannot write " + path.string() +
                ": Input/output error; what was recorded before stands, and --resume goes on "
                "from there");
  EXPECT_EQ(content(), record_text(0));
}

TEST_F(RecordWriterTest, writes_no_line_that_it_would_not_read) {
  RecordHeader header = full_header();
  header.command.assign(40'000, "an argument of a very long command");
  const auto writer = RecordWriter::create(path, header);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("no record has lines over 1048576"), std::string::npos);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RecordWriterTest, goes_on_after_it_is_moved) {
  auto writer = RecordWriter::create(path, full_header());
  ASSERT_TRUE(writer);
  {
    RecordWriter moved(std::move(*writer));
    ASSERT_TRUE(moved.append(full_measurement()));
  }
  EXPECT_EQ(content(), record_text(1));
}

TEST_F(RecordWriterTest, resumes_where_the_record_ends) {
  write(2);
  Record record;
  auto writer = RecordWriter::resume(path, full_header(), record);
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(record.measurements.size(), 2U);
  EXPECT_FALSE(record.dropped_last_line);
  ASSERT_TRUE(writer->append(full_measurement()));
  EXPECT_EQ(content(), record_text(3));
}

TEST_F(RecordWriterTest, cuts_a_half_written_last_line_before_it_goes_on) {
  const std::string line = measurement_line(full_measurement());
  for (const std::size_t length : {std::size_t{1}, line.size() / 2, line.size()}) {
    fs::remove(path);
    write(2);
    add(line.substr(0, length));
    Record record;
    auto writer = RecordWriter::resume(path, full_header(), record);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(record.measurements.size(), 2U);
    EXPECT_TRUE(record.dropped_last_line);
    EXPECT_EQ(content(), record_text(2));
    ASSERT_TRUE(writer->append(full_measurement()));
    EXPECT_EQ(content(), record_text(3));
  }
}

TEST_F(RecordWriterTest, resumes_its_own_record_of_a_command_that_is_no_utf8) {
  RecordHeader header = full_header();
  header.command = {"python3", "caf\xe9.py"};
  ASSERT_TRUE(RecordWriter::create(path, header));
  EXPECT_EQ(refusal(header), "no error");
}

TEST_F(RecordWriterTest, resumes_only_what_is_the_same_run) {
  write(1);
  RecordHeader header = full_header();
  EXPECT_EQ(refusal(header), "no error");
  header.device_id = "gpu:1";
  EXPECT_EQ(refusal(header), cannot_resume("its device is \"sim:rtx3090\", not \"gpu:1\""));
  header = full_header();
  header.workload = "study:train-tf32";
  EXPECT_EQ(refusal(header), cannot_resume("its workload is \"study:train-fp32\", not "
                                           "\"study:train-tf32\""));
  header = full_header();
  header.knobs = {power_limit_knob()};
  EXPECT_EQ(refusal(header),
            cannot_resume("its list of knobs is \"power_limit in W, batch\", not "
                          "\"power_limit in W\""));
  header = full_header();
  header.limits->max = Watts(450);
  EXPECT_EQ(refusal(header),
            cannot_resume("its range of limits is \"100.333 to 480 W, preset 389.9 W\", not "
                          "\"100.333 to 450 W, preset 389.9 W\""));
  header.limits = std::nullopt;
  EXPECT_EQ(refusal(header),
            cannot_resume("its range of limits is \"100.333 to 480 W, preset 389.9 W\", not "
                          "\"unknown\""));
  EXPECT_EQ(content(), record_text(1));
}

TEST_F(RecordWriterTest, names_the_first_word_of_a_command_that_differs) {
  write(1);
  RecordHeader header = full_header();
  header.command[1] = "test.py";
  EXPECT_EQ(refusal(header),
            cannot_resume("word 2 of its command is \"train.py\", not \"test.py\""));
  header.command = {"python3", "train.py"};
  EXPECT_EQ(refusal(header), cannot_resume("word 3 of its command is \"--name\", not missing"));
  header = full_header();
  header.command.emplace_back("--more");
  EXPECT_EQ(refusal(header), cannot_resume("word 6 of its command is missing, not \"--more\""));
}

TEST_F(RecordWriterTest, says_what_is_wrong_with_a_record_that_it_cannot_resume) {
  EXPECT_EQ(refusal(full_header()),
            "cannot read " + path.string() + ": No such file or directory");
  add("");
  EXPECT_EQ(refusal(full_header()), path.string() + ": the file is empty; needed a record");
  add(header_line(full_header()).substr(0, 50));
  EXPECT_EQ(refusal(full_header()),
            cannot_resume("its first line is half written; remove it and start anew"));
  fs::remove(path);
  write(1);
  add("{}\n");
  EXPECT_EQ(refusal(full_header()),
            path.string() + ":3: field schema is missing; needed halfwatt.measurement/1");
}

TEST_F(RecordWriterTest, gives_no_advice_to_remove_what_is_no_record) {
  add("a letter without an end of line");
  EXPECT_EQ(refusal(full_header()), path.string() + ":1: not a JSON object");
  EXPECT_EQ(content(), "a letter without an end of line");
}

TEST_F(RecordWriterTest, reads_no_folder) {
  EXPECT_EQ(read_record(folder).error().message,
            "cannot read " + folder.string() + ": Is a directory");
}

TEST_F(RecordWriterTest, reads_no_file_that_is_too_large_for_a_record) {
  add("");
  fs::resize_file(path, std::uintmax_t{300} << 20U);  // a hole: takes no room on disk
  EXPECT_EQ(read_record(path).error().message,
            path.string() + ": the file has 300 MiB; no record has over 256 MiB");
}

}  // namespace
}  // namespace halfwatt

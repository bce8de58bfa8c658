// The program as a person or a script meets it: real processes, real files, real signals.

#include "cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace halfwatt {
namespace {

TEST(Program, alone_says_what_the_machine_has_and_what_to_try_next) {
  const Outcome outcome = run_program("");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("This machine: "), std::string::npos);
  EXPECT_NE(outcome.out.find("Try next:  "), std::string::npos);
}

TEST(Program, analyzes_the_recorded_study_as_the_golden_text_says) {
  const Outcome outcome = run_program("analyze data/rtx3090_vit_b16.csv");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, read_file("tests/golden/study.txt"));
}

TEST(Program, analyzes_the_recorded_study_as_the_golden_json_says) {
  const Outcome outcome = run_program("analyze data/rtx3090_vit_b16.csv --format json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, read_file("tests/golden/study.json"));
}

TEST(Program, analyzes_every_recorded_set) {
  for (const char* words :
       {"data/zeus_nsdi23_power_trace.csv", "data/zeus_jit_profiles.csv",
        "data/club3090_llm_power_caps.csv", "data/kernel_tuner_a4000_freq_power.csv",
        "data/club3090_rtx5090_clock_lock.csv --y tokens_per_s_code"}) {
    for (const char* format : {"text", "json", "csv"}) {
      const Outcome outcome =
          run_program(std::string("analyze ") + words + " --format " + format);
      EXPECT_EQ(outcome.status, 0) << words << outcome.err;
      EXPECT_FALSE(outcome.out.empty());
    }
  }
}

TEST(Program, shows_the_study_from_figures_to_verdict) {
  const Folder folder;
  const Outcome outcome = run_program("study --report " + folder.path("study.html"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("10 of 30 published limits"), std::string::npos);
  EXPECT_NE(outcome.out.find(" of 34"), std::string::npos);
  EXPECT_NE(outcome.out.find("Try next:  "), std::string::npos);
  EXPECT_NE(outcome.err.find(folder.path("study.html")), std::string::npos);
  EXPECT_NE(read_file(folder.path("study.html")).find("<!DOCTYPE html>"), std::string::npos);
}

TEST(Program, gives_the_same_verdict_to_the_byte_from_the_record_as_from_the_run) {
  const Folder folder;
  const std::string record = folder.path("run.jsonl");
  for (const char* format : {"json", "csv", "text"}) {
    std::filesystem::remove(record);
    const Outcome run =
        run_program("tune --workload study:inference-fp32 --keep 85,92 --record " + record +
                    " --format " + format);
    ASSERT_EQ(run.status, 0) << run.err;
    const Outcome read = run_program("analyze " + record + " --format " + format);
    EXPECT_EQ(read.status, 0) << read.err;
    EXPECT_EQ(run.out, read.out);
  }
}

TEST(Program, says_simulated_on_everything_that_a_simulated_card_measured) {
  for (const char* format : {"text", "json", "csv"}) {
    const Outcome outcome =
        run_program(std::string("tune --workload study:train-tf32 --format ") + format);
    EXPECT_NE(outcome.out.find("simulated"), std::string::npos) << format;
  }
}

TEST(Program, goes_on_with_an_interrupted_sweep) {
  const Folder folder;
  const std::string words = "sweep --workload study:train-fp32 --limits 200:480:40 --record ";
  ASSERT_EQ(run_program(words + folder.path("whole.jsonl")).status, 0);
  const std::string whole = read_file(folder.path("whole.jsonl"));
  const std::size_t half = whole.find('\n', whole.size() / 2) + 20;  // in the middle of a line
  folder.write("cut.jsonl", whole.substr(0, half));
  const Outcome outcome = run_program(words + folder.path("cut.jsonl") + " --resume");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("half written"), std::string::npos);
  const std::string resumed = read_file(folder.path("cut.jsonl"));
  EXPECT_EQ(std::count(resumed.begin(), resumed.end(), '\n'),
            std::count(whole.begin(), whole.end(), '\n'));
}

TEST(Program, refuses_to_go_on_with_the_record_of_another_workload) {
  const Folder folder;
  ASSERT_EQ(
      run_program("tune --workload study:train-fp32 --record " + folder.path("a.jsonl")).status,
      0);
  const std::string before = read_file(folder.path("a.jsonl"));
  const Outcome outcome = run_program("tune --workload study:train-tf32 --resume --record " +
                                      folder.path("a.jsonl"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("its workload is \"study:train-fp32\", not \"study:train-tf32\""),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(read_file(folder.path("a.jsonl")), before);
}

TEST(Program, refuses_to_go_on_with_a_record_that_was_asked_something_else) {
  const Folder folder;
  const std::string words =
      "tune --workload study:train-fp32 --record " + folder.path("a.jsonl") + " ";
  ASSERT_EQ(run_program(words).status, 0);
  for (const char* other : {"--keep 70", "--reference default", "--step 20"}) {
    const Outcome outcome = run_program(words + "--resume " + other);
    EXPECT_EQ(outcome.status, 2) << other;
    EXPECT_NE(outcome.err.find("cannot resume"), std::string::npos) << outcome.err;
  }
}

TEST(Program, tunes_against_the_default_limit_when_asked) {
  const Outcome outcome =
      run_program("tune --workload study:train-amp-fp16 --reference default --format json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"reference_w\": 390.0"), std::string::npos);
  EXPECT_NE(outcome.out.find("\"limit_w\": 280.0"), std::string::npos);  // 90 % of 390 W
}

TEST(Program, ends_without_a_verdict_when_the_workload_does_no_step) {
  const Folder folder;
  const Outcome outcome = run_program(
      "tune --device sim:" +
      folder.write("slow.csv", "power_limit_w,time_s\n100,5000\n200,4000\n300,3900\n"));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("no window counts"), std::string::npos) << outcome.err;
}

TEST(Program, keeps_what_is_recorded_when_the_disk_is_full) {
  const Folder folder;
  const std::string record = folder.path("run.jsonl");
  // 2 KiB: the first lines fit. The shell's unit is 512 bytes by POSIX and 1024 in bash.
  const Outcome outcome =
      run_program("tune --workload study:train-fp32 --record " + record, "ulimit -f 2;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("cannot write " + record), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  const std::string kept = read_file(record);
  EXPECT_TRUE(kept.ends_with("}\n"));
  EXPECT_EQ(run_program("analyze " + record).status, 0);
  EXPECT_EQ(run_program("tune --workload study:train-fp32 --resume --record " + record).status,
            0);
}

TEST(Program, stops_on_a_signal_with_status_5_and_a_whole_record) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Folder folder;
    const std::string record = folder.path("run.jsonl");
    const std::string program = std::getenv("HALFWATT_PROGRAM");
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDOUT_FILENO);
      ::dup2(null, STDERR_FILENO);
      ::execl(program.c_str(), "halfwatt", "sweep", "--workload", "study:train-fp32",
              "--repeats", "1000", "--record", record.c_str(), nullptr);
      ::_exit(127);
    }
    // Once it has begun to record, it is in the measuring loop.
    while (!std::filesystem::exists(record) || std::filesystem::file_size(record) < 2000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 5);
    EXPECT_TRUE(read_file(record).ends_with("}\n"));
    EXPECT_EQ(run_program("analyze " + record).status, 0);
  }
}

TEST(Program, gives_no_verdict_on_a_dead_network) {
  const Outcome outcome = run_program("tune --workload study:train-fp16-half");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_TRUE(outcome.out.empty());
  EXPECT_NE(outcome.err.find("dead"), std::string::npos);
}

TEST(Program, clamps_limits_outside_of_the_cards_range_with_a_note) {
  const Folder folder;
  const Outcome outcome = run_program(
      "sweep --workload study:train-fp32 --limits 100,300,900 "
      "--format json --record " +
      folder.path("a.jsonl"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("100, 900 W are outside the card's 150 to 480 W"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(read_file(folder.path("a.jsonl")).find("\"clamped\""), std::string::npos);
  EXPECT_NE(outcome.out.find("the nearest it takes was used"), std::string::npos);
}

TEST(Program, plays_back_a_users_own_file) {
  const Folder folder;
  std::string csv = "power_limit_w,ms_per_batch,batch\n";
  for (int limit = 100; limit <= 300; limit += 20) {
    csv +=
        std::to_string(limit) + "," + std::to_string(50 + 4000000 / (limit * limit)) + ",8\n";
  }
  const Outcome outcome =
      run_program("tune --format json --device sim:" + folder.write("own.csv", csv));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"reference_w\": 300"), std::string::npos);
}

TEST(Program, prints_help_and_a_man_page_from_the_same_table) {
  const Outcome help = run_program("--help");
  const Outcome man = run_program("man");
  for (const char* command : {"study", "analyze", "tune", "sweep", "plan", "inspect", "man"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + command + " "), std::string::npos);
    EXPECT_NE(man.out.find(std::string(".SS ") + command + "\n"), std::string::npos);
    const Outcome one = run_program(std::string(command) + " --help");
    EXPECT_EQ(one.status, 0);
    EXPECT_TRUE(one.out.starts_with(std::string("Usage: halfwatt ") + command));
  }
}

TEST(Program, keeps_help_within_eighty_columns) {
  for (const char* command : {"", "study ", "analyze ", "tune ", "sweep ", "plan ", "infer ",
                              "calibrate ", "inspect ", "man "}) {
    std::istringstream lines(run_program(std::string(command) + "--help").out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << line;
    }
  }
}

TEST(Program, says_when_its_output_cannot_be_written) {
  const Outcome outcome = run_program("--help >/dev/full #");
  EXPECT_EQ(outcome.status, 2);
}

struct Bad {
  const char* words;
  int status;
  const char* says;
};

std::ostream& operator<<(std::ostream& out, const Bad& bad) { return out << bad.words; }

// One clear line each: what was found, what was needed, which flag or file mends it.
constexpr Bad kBad[] = {
    {"frobnicate", 2, "frobnicate: not a command; there are study, analyze"},
    {"tune --bogus", 2, "--bogus; see halfwatt tune --help"},
    {"analyze", 2, "no FILE given"},
    {"analyze /nonexistent.csv", 2, "/nonexistent.csv"},
    {"analyze data", 2, "data"},
    {"analyze data/rtx3090_vit_b16.csv --keep 80,abc", 2, "--keep abc: not a number"},
    {"analyze data/rtx3090_vit_b16.csv --keep 0", 2, "needed shares above 0"},
    {"analyze data/rtx3090_vit_b16.csv --keep nan", 2, "--keep nan: not a number"},
    {"analyze data/rtx3090_vit_b16.csv --reference best", 2, "needed top, default or max"},
    {"analyze data/rtx3090_vit_b16.csv --relative-to fp8", 2, "no series of that name"},
    {"analyze data/rtx3090_vit_b16.csv --format xml", 2, "needed text, json or csv"},
    {"analyze data/rtx3090_vit_b16.csv --report /nonexistent/a.html", 2, "/nonexistent"},
    {"tune --workload nothing", 2, "study:train-fp32"},
    {"tune", 2, "--workload is missing; needed one of study:train-fp32"},
    {"tune --device gpu:0", 3, "sim:rtx3090 or sim:FILE.csv"},
    {"tune --device gpu:x", 2, "not a device"},
    {"tune --device sim:rtx9999", 3, "no such simulated device"},
    {"tune --device sim:/nonexistent.csv", 2, "/nonexistent.csv"},
    {"tune --workload study:train-fp32 --noise -1", 2, "--noise"},
    {"tune --workload study:train-fp32 --max-limits 1", 2, "needed a number from 4 to 200"},
    {"tune --workload study:train-fp32 --resume", 2, "--resume needs --record FILE"},
    {"tune --workload study:train-fp32 --record /nonexistent/a.jsonl", 2, "cannot write"},
    {"sweep --workload study:train-fp32 --limits 480:150:10", 2, "needed LOW:HIGH:STEP"},
    {"sweep --workload study:train-fp32 --limits 1:1e9:1e-9", 2, "limits"},
    {"sweep --workload study:train-fp32 --order sideways", 2, "needed interleaved"},
    {"tune --workload study:train-fp32 --seed 1.5", 2, "--seed 1.5: needed a whole number"},
    {"tune --workload study:train-fp32 --reference max", 2, "known only afterwards"},
    {"tune --workload study:train-fp32 --keep 90,", 2, "--keep: a number is missing"},
    {"tune --workload", 2, "--workload: a value is missing"},
    {"infer", 2, "--model NAME is missing"},
    {"infer --model resnet50", 2, "no model resnet50; there are vit_"},
    {"infer --model vit_micro_patch4_16", 2, "no pictures; needed PATH..., or --input with a"},
    {"infer --model vit_micro_patch4_16 --batch 0", 2, "--batch 0: needed a number from 1"},
    {"infer --model vit_micro_patch4_16 --classes 0", 2, "--classes 0: needed a number from 1"},
    {"infer --model vit_micro_patch4_16 --pool max", 2, "--pool max: needed token or mean"},
    {"infer --model vit_micro_patch4_16 --precision fp4", 2,
     "no precision fp4; there are fp32"},
    {"infer --model vit_micro_patch4_16 --override x", 2, "--override x: needs PATTERN=PREC"},
    {"infer --model vit_micro_patch4_16 --input synthetic:1 --override tail=fp32", 2,
     "--override tail: no layer is called so"},
    {"infer --model vit_micro_patch4_16 --input synthetic:0", 2, "synthetic: 0: needed"},
    {"infer --model vit_micro_patch4_16 --input synthetic:", 2, "a number is missing"},
    {"infer --model vit_micro_patch4_16 --input /nonexistent", 2, "cannot read /nonexistent"},
    {"infer --model vit_micro_patch4_16 --input data/rtx3090_vit_b16.csv", 2,
     "no safetensors file"},
    {"infer --model vit_micro_patch4_16 --input synthetic:1 --weights /nonexistent", 2,
     "cannot read /nonexistent"},
    {"infer --model vit_base_patch16_384 --input synthetic:1 --batch 1000000", 2, " would"},
    {"infer --model vit_base_patch16_384 --input synthetic:1000000000", 2, "do not fit"},
    {"infer --model vit_micro_patch4_16 --input synthetic:1 --format text", 2,
     "needed table, csv or json"},
    {"inspect", 2, "inspect: 0 files given, needed one FILE"},
    {"inspect /nonexistent", 2, "cannot read /nonexistent: No such file"},
    {"inspect data", 2, "data: is a folder; needed a file"},
    {"inspect data/rtx3090_vit_b16.csv", 2, "no safetensors file"},
    {"inspect data/rtx3090_vit_b16.csv --format csv", 2, "needed text or json"},
    {"help frobnicate", 2, "frobnicate: not a command"},
    {"analyze data/rtx3090_vit_b16.csv data/rtx3090_vit_b16.csv", 2, "is given twice"},
    {"sweep --workload study:train-fp32 --repeats 0", 2, "needed a number from 1 to 1000"},
};

class BadInput : public ::testing::TestWithParam<Bad> {};

TEST_P(BadInput, gets_one_clear_line_and_its_exit_status) {
  const Bad& bad = GetParam();
  const Outcome outcome = run_program(bad.words);
  EXPECT_EQ(outcome.status, bad.status) << bad.words;
  EXPECT_NE(outcome.err.find(bad.says), std::string::npos) << bad.words << ": " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Program, BadInput, ::testing::ValuesIn(kBad));

}  // namespace
}  // namespace halfwatt

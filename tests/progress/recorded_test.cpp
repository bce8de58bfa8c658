// What tqdm, the Trainer of Hugging Face and Lightning really printed (recorded/README.md),
// read by the presets.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "progress/output_reader.h"

namespace halfwatt {
namespace {

struct Recording {
  const char* file;
  const char* preset;
  NumericalState state;
  double steps;             ///< what the job did, less the first number that it told above zero
  double steps_beside = 0;  ///< counted by auto too, before the training began
};

constexpr NumericalState kUnknown = NumericalState::unknown;
constexpr NumericalState kLive = NumericalState::live;
constexpr NumericalState kDead = NumericalState::dead;

const std::vector<Recording> kRecordings = {
    {"tqdm_epochs", "tqdm", kUnknown, 3 * 40 - 5},
    {"tqdm_nested", "tqdm", kLive, 3 * 30 - 5},
    {"tqdm_nested_pty", "tqdm", kLive, 3 * 30 - 5},
    {"tqdm_slow", "tqdm", kUnknown, 4 - 1},
    {"tqdm_resumed", "tqdm", kUnknown, 540 - 500},
    {"tqdm_without_total", "tqdm", kUnknown, 40 - 5},
    {"tqdm_train_val", "tqdm", kUnknown, 3 * 50 - 5},
    // The preparation before the training, from its first number on, and the training.
    {"tqdm_prepared", "tqdm", kDead, 5000 - 612 + 60 - 5},
    {"hf_trainer_pipe", "hf-trainer", kLive, 60 - 5},
    {"hf_trainer_pty", "hf-trainer", kLive, 60 - 5},
    {"hf_trainer_resumed", "hf-trainer", kLive, 80 - 65},
    {"hf_trainer_nan", "hf-trainer", kDead, 40 - 5},
    {"lightning_pipe", "lightning", kLive, 2 * 30 - 1, 1},  // its sanity check
    {"lightning_pty", "lightning", kLive, 2 * 30 - 1, 1},
    {"lightning_resumed", "lightning", kLive, 30 - 1, 1},
};

std::string bytes_of(const Recording& recording) {
  return read_file(std::string("tests/progress/recorded/") + recording.file + ".bytes");
}

/// Feeds `bytes` in pieces of `piece`.
SourceReading read_in_pieces(const std::string& bytes,
                             const std::string& name,
                             std::size_t piece) {
  OutputReader output(*preset(name));
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    output.take(std::string_view(bytes).substr(at, piece), Seconds(1));
  }
  return output.reading();
}

std::string said(const SourceReading& reading) {
  return std::to_string(reading.steps) + " steps, " + std::to_string(reading.losses.told) +
         " losses, " + std::to_string(reading.losses.changed) + " changed, " +
         std::to_string(reading.losses.dead) + " dead";
}

TEST(Recorded, says_how_many_steps_were_done_and_whether_the_numbers_live) {
  for (const Recording& recording : kRecordings) {
    const std::string bytes = bytes_of(recording);
    ASSERT_FALSE(bytes.empty()) << recording.file;
    for (const std::string name : {recording.preset, "auto"}) {
      const SourceReading reading = read_in_pieces(bytes, name, bytes.size());
      const double steps = recording.steps + (name == "auto" ? recording.steps_beside : 0);
      EXPECT_EQ(reading.steps, steps) << recording.file << " by " << name;
      EXPECT_EQ(state_between({}, reading.losses), recording.state)
          << recording.file << " by " << name << ": " << said(reading);
    }
  }
}

TEST(Recorded, says_the_same_however_it_is_cut_into_pieces) {
  for (const Recording& recording : kRecordings) {
    const std::string bytes = bytes_of(recording);
    const std::string whole = said(read_in_pieces(bytes, recording.preset, bytes.size()));
    for (const std::size_t piece : {1, 2, 3, 5, 7, 64, 1000}) {
      EXPECT_EQ(said(read_in_pieces(bytes, recording.preset, piece)), whole)
          << recording.file << " in pieces of " << piece;
    }
  }
}

TEST(Recorded, says_the_same_when_it_is_cut_once_anywhere) {
  constexpr std::size_t kShort = 1000;  // the time grows with the square
  for (const Recording& recording : kRecordings) {
    const std::string bytes = bytes_of(recording).substr(0, kShort);
    const std::string whole = said(read_in_pieces(bytes, recording.preset, bytes.size()));
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      OutputReader output(*preset(recording.preset));
      output.take(std::string_view(bytes).substr(0, cut), Seconds(1));
      output.take(std::string_view(bytes).substr(cut), Seconds(1));
      ASSERT_EQ(said(output.reading()), whole) << recording.file << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace halfwatt

// `halfwatt train` as people run it: to its end, interrupted, killed, and on bad input.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli/program.h"
#include "support/pictures.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kMetrics = "metrics.jsonl";

// Digits, dropped parts, averages, a micro-batch of two: all that goes on over a checkpoint.
std::string training(const std::string& out, const std::string& more = "", int epochs = 3) {
  return "train --data data/digits.csv.gz --model vit_micro_patch4_8 --batch 24 --accumulate 2 "
         "--drop-path 0.1 --ema 0.9 --lr 0.003 --hold-out 0.2 --save-every 7 "
         "--precision amp-bf16 --threads 1 --decode-threads 2 --least-area 0.6 --out " +
         out + " --epochs " + std::to_string(epochs) + " " + more;
}

struct Trained {
  explicit Trained(const std::string& out)
      : weights(read_file(std::filesystem::path(out) / kModel)),
        metrics(read_file(std::filesystem::path(out) / kMetrics)) {}
  std::string weights;
  std::string metrics;
  bool operator==(const Trained&) const = default;
};

Trained uninterrupted(int epochs = 3) {
  const Folder folder;
  const Outcome outcome = run_program(training(folder.path("out"), "", epochs));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return Trained(folder.path("out"));
}

TEST(TrainCommand, leaves_weights_checkpoints_and_logs) {
  const Folder folder;
  const Outcome outcome = run_program(training(folder.path("out")));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3) << outcome.out;
  EXPECT_NE(outcome.out.find("epoch   3  top-1 "), std::string::npos) << outcome.out;
  for (const char* name : {kModel, "last.safetensors", "best.safetensors", "speed.jsonl"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path("out/" + std::string(name)))) << name;
  }
  std::ifstream metrics(folder.path("out/metrics.jsonl"));
  std::int64_t steps = 0;
  std::int64_t evaluations = 0;
  for (std::string line; std::getline(metrics, line);) {
    const Json json = Json::parse(line);
    if (json["event"] == "step") {
      EXPECT_EQ(json["attempt"], ++steps);
      EXPECT_EQ(json["state"], "live");
      continue;
    }
    ++evaluations;
    std::int64_t counted = 0;
    for (const auto& each : json["confusion"]) {
      counted += each.get<std::int64_t>();
    }
    EXPECT_EQ(counted, json["images"]) << "every image is counted once";
  }
  EXPECT_EQ(steps, 3 * 29);  // 1,438 pictures, 48 a step
  EXPECT_EQ(evaluations, 3);
}

TEST(TrainCommand, goes_on_to_the_same_bytes_however_often_it_is_killed) {
  const Trained wanted = uninterrupted();
  Rng rng(20261130);
  for (int run = 0; run < 2; ++run) {
    const Folder folder;
    int kills = 0;
    Outcome outcome;
    do {
      const double after = 0.05 + 0.4 * rng.uniform();
      outcome = run_program(training(folder.path("out"), "--resume"),
                            "timeout -s KILL " + std::to_string(after) + " ");
      kills += outcome.status == 0 ? 0 : 1;
    } while (outcome.status != 0 && kills < 100);
    EXPECT_TRUE(Trained(folder.path("out")) == wanted) << kills << " kills";
  }
}

/// To go in front: it is interrupted once, as soon as a step is in its log. For up to 20 s.
std::string interrupted_after_a_step(const std::string& out) {
  return "sh -c '(i=0; until grep -qs step \"" + out + "/" + kMetrics +
         "\" || [ $i -ge 1000 ]; do i=$((i + 1)); sleep 0.02; done; kill -INT $$) & "
         "exec \"$0\" \"$@\"'";
}

TEST(TrainCommand, saves_on_an_interruption_and_goes_on_to_the_same_bytes) {
  constexpr int kEpochs = 12;  // so that it lasts until it is interrupted
  const Trained wanted = uninterrupted(kEpochs);
  const Folder folder;
  // In the foreground: else timeout interrupts its group, too, and a second time ends it at
  // once.
  const Outcome outcome = run_program(training(folder.path("out"), "", kEpochs),
                                      "timeout --foreground --preserve-status -s INT 0.4 ");
  if (outcome.status == 0) {
    GTEST_SKIP() << "this machine trains faster than it can be interrupted";
  }
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("--resume goes on from there"), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/last.safetensors")));
  const Outcome rest = run_program(training(folder.path("out"), "--resume", kEpochs));
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_TRUE(Trained(folder.path("out")) == wanted);
}

TEST(TrainCommand,
     learns_from_a_folder_of_pictures_and_names_the_bad_one_and_counts_the_turned) {
  const Folder folder;
  for (const int label : {0, 1}) {
    const std::string name = label == 0 ? "dark" : "light";
    std::filesystem::create_directories(folder.path(name));
    for (std::uint64_t at = 0; at < 24; ++at) {
      Image image = drawn_image(20, 17, at + 1);
      for (std::uint8_t& value : image.pixels) {
        value = static_cast<std::uint8_t>(label * 128 + value / 2);
      }
      const bool jpeg = at % 2 == 0;
      folder.write(name + "/" + std::to_string(at) + (jpeg ? ".jpg" : ".png"),
                   jpeg ? jpeg_of(image) : png_of(image));
    }
  }
  folder.write("dark/bad.png", "no picture");
  folder.write("dark/0.jpg",
               with_segment(read_file(folder.path("dark/0.jpg")), exif_segment(6)));
  const std::string words = "train --data " + folder.path("") +
                            " --model vit_micro_patch8_16 --batch 8 --epochs 6 --lr 0.003 "
                            "--hold-out 0.25 --out ";
  const Outcome stopped = run_program(words + folder.path(".one"));
  EXPECT_EQ(stopped.status, 2);
  EXPECT_NE(stopped.err.find("bad.png"), std::string::npos) << stopped.err;
  const Outcome skipped = run_program(words + folder.path(".two") + " --bad-images skip");
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_NE(skipped.err.find("left out: "), std::string::npos) << skipped.err;
  EXPECT_NE(skipped.out.find("top-1 100.00 %"), std::string::npos) << skipped.out;
  const std::string once = skipped.err.substr(skipped.err.find("left out: ") + 1);
  EXPECT_EQ(once.find("left out: "), std::string::npos) << "of six epochs: " << skipped.err;
  for (const char* file : {"best.safetensors", "model.safetensors"}) {
    const Outcome told =
        run_program("infer --model vit_micro_patch8_16 --classes 2 --top 1 " +
                    folder.path("light") + " --weights " + folder.path(".two/") + file);
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_NE(told.out.find("23.png  light"), std::string::npos) << told.out;
  }
  const Outcome refused =
      run_program(words + folder.path(".three") + " --classes 3 --weights " +
                  folder.path(".two/model.safetensors"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("its head has 2 classes: --reset-head"), std::string::npos)
      << refused.err;
  const std::string turned = "halfwatt: 1 picture was turned as its EXIF orientation says\n";
  EXPECT_NE(skipped.err.find(turned), std::string::npos) << skipped.err;
  EXPECT_EQ(skipped.err.find(turned), skipped.err.rfind(turned)) << "once, not every epoch";
}

TEST(TrainCommand, says_what_it_would_do_and_does_nothing) {
  const Outcome outcome = run_program(
      "train --data synthetic:100 --model vit_micro_patch4_16 --classes 4 --dry-run");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("4 classes; 88 pictures to learn from, 12 held out; 1 epochs of 2 "
                             "steps of 32 pictures in fp32"),
            std::string::npos)
      << outcome.out;
}

TEST(TrainCommand, refuses_bad_input_in_one_clear_line) {
  const Folder folder;
  const auto refusal = [](const std::string& words) {
    const Outcome outcome = run_program("train --model vit_micro_patch4_16 " + words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  const std::string data = "--data synthetic:64 --classes 2 ";
  const std::string out = "--out " + folder.path("out") + " ";
  EXPECT_NE(refusal(out).find("--data WHAT is missing"), std::string::npos);
  EXPECT_NE(refusal(data).find("--out DIR is missing"), std::string::npos);
  EXPECT_NE(refusal(data + out + "--schedule x").find("needed cosine or linear or constant"),
            std::string::npos);
  EXPECT_NE(refusal(data + out + "--batch 1000").find("needed a smaller --batch"),
            std::string::npos);
  EXPECT_NE(refusal(data + out + "--precision O3").find("eps"), std::string::npos);
  EXPECT_NE(refusal("--data /nowhere " + out).find("/nowhere"), std::string::npos);
  EXPECT_EQ(run_program("train --model vit_micro_patch4_16 " + data + out).status, 0);
  EXPECT_NE(refusal(data + out).find("needed --resume, or another --out"), std::string::npos);
  EXPECT_NE(refusal(data + out + "--resume --lr 0.5").find("rate"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

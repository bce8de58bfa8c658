// `halfwatt inspect` on the file that the reference implementation wrote, and on worse ones.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace halfwatt {
namespace {

const std::string kReference = "tests/golden/formats/reference.safetensors";

TEST(Inspect, prints_what_the_golden_text_says) {
  const Outcome outcome = run_program("inspect --values " + kReference);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, read_file("tests/golden/formats/inspect.txt"));
}

TEST(Inspect, tells_a_script_where_every_tensor_lies) {
  const Outcome outcome = run_program("inspect --format json " + kReference);
  EXPECT_EQ(outcome.status, 0);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "halfwatt.inspect/1");
  EXPECT_EQ(json["file"], kReference);
  EXPECT_EQ(json["elements"], 24);
  EXPECT_EQ(json["metadata"], (nlohmann::json{{"format", "pt"}}));
  std::size_t at = json["header_bytes"];
  for (const auto& tensor : json["tensors"]) {
    EXPECT_EQ(tensor["offset"], at);
    EXPECT_FALSE(tensor.contains("values"));
    at += tensor["bytes"].get<std::size_t>();
  }
  EXPECT_EQ(json["file_bytes"], at);
  EXPECT_EQ(json["tensors"].back()["name"], "mask");
  EXPECT_EQ(json["tensors"][3]["shape"], (nlohmann::json{2, 2}));
}

TEST(Inspect, gives_unknown_and_not_zero_for_values_that_it_cannot_read) {
  const Outcome outcome = run_program("inspect --values --format json " + kReference);
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& tensor : json["tensors"]) {
    if (tensor["name"] == "half") {
      EXPECT_TRUE(tensor["values"].is_null());
    }
    if (tensor["name"] == "none") {
      EXPECT_EQ(tensor["values"]["not_finite"], 0);
      EXPECT_TRUE(tensor["values"]["mean"].is_null());
    }
    if (tensor["name"] == "ids") {
      EXPECT_EQ(tensor["values"]["max"], 2147483647);
    }
  }
}

TEST(Inspect, says_what_it_ignores_and_shows_the_rest) {
  const std::string json =
      R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"quantized":true}})";
  const Folder folder;
  const std::string file =
      folder.write("a", static_cast<char>(json.size()) + std::string(7, '\0') + json);
  const Outcome outcome = run_program("inspect " + file);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("field \"quantized\" is not known"), std::string::npos);
  EXPECT_NE(outcome.out.find("1 tensor, 0 elements"), std::string::npos);
}

TEST(Inspect, refuses_a_malformed_file_in_one_line_without_its_control_characters) {
  const std::string json = R"({"\u001b[2J":{"dtype":"Q4","shape":[0],"data_offsets":[0,0]}})";
  const Folder folder;
  const std::string file =
      folder.write("a", static_cast<char>(json.size()) + std::string(7, '\0') + json);
  const Outcome outcome = run_program("inspect " + file);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(R"(tensor "\u001b[2J": dtype: "Q4"; needed one of BOOL)"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace halfwatt

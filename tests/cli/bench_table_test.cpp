// What `halfwatt bench` says of rows that were not measured.

#include "cli/bench_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace halfwatt {
namespace {

/// What a GPU refuses of the products of a model.
std::vector<LeftOut> head_in_fp8() {
  LeftOut head;
  head.setting.set("shape", std::string("16x192x1000 NT"));
  head.setting.set("precision", std::string("fp8"));
  head.reason = "a product of fp8 of 1000 columns, needs a multiple of 16";
  return {head};
}

constexpr const char* kLine =
    "16x192x1000 NT, fp8: a product of fp8 of 1000 columns, needs a multiple of 16";

TEST(BenchTable, names_what_was_left_out_and_why_in_a_line_for_people) {
  EXPECT_EQ(text(head_in_fp8().front()), kLine);
  const Document document = bench_document({}, {}, head_in_fp8());
  const auto* const note = std::get_if<Note>(&document.blocks.back());
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->text, std::string("left out: ") + kLine);
}

TEST(BenchTable, names_what_was_left_out_and_why_for_scripts) {
  const auto json = nlohmann::json::parse(bench_json({}, {}, head_in_fp8()));
  ASSERT_EQ(json["left_out"].size(), 1U);
  EXPECT_EQ(json["left_out"][0]["shape"], "16x192x1000 NT");
  EXPECT_EQ(json["left_out"][0]["precision"], "fp8");
  EXPECT_EQ(json["left_out"][0]["reason"],
            "a product of fp8 of 1000 columns, needs a multiple of 16");
  EXPECT_TRUE(nlohmann::json::parse(bench_json({}, {}, {}))["left_out"].empty());
}

}  // namespace
}  // namespace halfwatt

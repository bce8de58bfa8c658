// `halfwatt bench` on models so small that a row takes moments.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "measure/record.h"

namespace halfwatt {
namespace {

using Json = nlohmann::json;

const std::string kMicro = "bench --model vit_micro_patch4_16 --classes 10 --seconds 0.2 ";

Outcome run_bench(const std::string& words) { return run_program(words, with_shared_cache()); }

TEST(Bench, tells_a_script_of_every_row_what_was_measured_and_what_was_planned) {
  const Outcome outcome =
      run_bench(kMicro +
                "--mode infer --precision fp32,fp8-delayed --batch 4,8 --threads 1 "
                "--format json");
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 4) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "halfwatt.bench/1");
  EXPECT_EQ(json["labels"]["threads"], "1");
  ASSERT_EQ(json["rows"].size(), 4U);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["step_ms"], 0);
    EXPECT_LE(row["step_p05_ms"], row["step_ms"]);
    EXPECT_LE(row["step_ms"], row["step_p95_ms"]);
    EXPECT_GT(row["predicted_ms"], 0);
    EXPECT_GT(row["plan_mib"], 0);
    EXPECT_EQ(row["numerical_state"], "live");
    EXPECT_EQ(row["emulated"], row["precision"] == "fp8-delayed");
    EXPECT_NE(row["watts"], 0) << "unknown is null";
  }
  EXPECT_EQ(json["rows"][1]["gigaflops_per_step"].get<double>(),
            2 * json["rows"][0]["gigaflops_per_step"].get<double>());
}

TEST(Bench, computes_on_a_processor_or_a_card_and_on_nothing_else) {
  for (const std::string device : {"sim:rtx3090", "gpu:", "gpu:123456789012", "nothing"}) {
    const Outcome outcome = run_bench(kMicro + "--mode infer --device " + device);
    EXPECT_EQ(outcome.status, 2) << device;
    EXPECT_NE(outcome.err.find("--device " + device + ": needed cpu, or gpu:N"),
              std::string::npos)
        << outcome.err;
  }
}

TEST(Bench, says_in_one_line_why_a_card_does_not_compute) {
  const Outcome outcome = run_bench(kMicro + "--mode infer --device gpu:999");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(Bench, writes_its_rows_as_a_record_and_measures_rates_once) {
  const Folder folder;
  const std::string file = folder.path("rows.jsonl");
  const Outcome first =
      run_program(kMicro + "--batch 4 --format csv --record " + file, with_cache(folder));
  EXPECT_NE(first.err.find("measuring how fast"), std::string::npos) << first.err;
  const Result<Record> record = read_record(file);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->header.workload, "vit_micro_patch4_16 train");
  ASSERT_FALSE(record->measurements.empty());
  EXPECT_EQ(text(record->measurements.back().setting), "precision=fp32 batch=4");
  EXPECT_TRUE(record->measurements.back().predicted);
  EXPECT_EQ(first.out.substr(0, 46), "workload,precision,batch,step_ms,step_p05_ms,s");

  const Outcome again =
      run_program(kMicro + "--batch 4 --resume --record " + file, with_cache(folder));
  EXPECT_EQ(again.err.find("measuring how fast"), std::string::npos) << again.err;
  EXPECT_EQ(read_record(file)->measurements.size(), record->measurements.size());
}

TEST(Bench, shows_no_figure_of_a_dead_network) {
  const Outcome outcome =
      run_bench(kMicro + "--precision O3 --batch 4 --allow-dead --format json");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("dead"), std::string::npos);
  const Json row = Json::parse(outcome.out)["rows"][0];
  EXPECT_EQ(row["numerical_state"], "dead");
  EXPECT_EQ(row["counts"], false);
  for (const char* figure : {"step_ms", "step_p05_ms", "items_per_second", "teraflops"}) {
    EXPECT_TRUE(row[figure].is_null()) << figure;
  }
  const Outcome table = run_bench(kMicro + "--precision O3 --batch 4 --allow-dead");
  EXPECT_NE(table.out.find("void"), std::string::npos) << table.out;
}

TEST(Bench, refuses_a_mode_that_is_certain_to_die_unless_that_is_wanted) {
  const Outcome outcome = run_bench(kMicro + "--precision fp32,O3 --batch 4");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("O3: eps 1e-08 is 0 in f16"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--allow-dead"), std::string::npos);
}

TEST(Bench, measures_one_product) {
  const Outcome outcome =
      run_bench("bench op matmul 64x32x16 --precision fp32,bf16 --seconds 0.2 --format json");
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["unit"], "product");
  EXPECT_EQ(json["rows"][0]["gigaflops_per_step"].get<double>(), 2e-9 * 64 * 32 * 16);
}

// fp16 is emulated on processors, and so never the faster one.
TEST(Bench, measures_the_products_of_a_model_and_says_where_narrow_formats_do_not_pay) {
  const std::string words =
      "bench op matmul --model vit_micro_patch4_16 --mode infer --batch 2 "
      "--precision fp32,fp16 --seconds 0.1 ";
  const Outcome outcome = run_bench(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("shape"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("NT: fp16 is no faster than fp32 ("), std::string::npos)
      << outcome.out;
}

TEST(Bench, refuses_bad_input_before_anything_runs) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"bench --model resnet", "--model: "},
      {"bench --precision fp12", "no precision fp12"},
      {"bench --precision ''", "--precision: names none"},
      {"bench --batch 0", "--batch 0: needed whole numbers of 1 to"},
      {"bench --batch 1.5", "--batch 1.5: needed whole numbers"},
      {"bench --mode sleep", "--mode sleep: needed train or infer"},
      {"bench --format xml", "--format xml: needed table, csv or json"},
      {"bench --classes 0", "--classes"},
      {"bench --threads 0", "--threads"},
      {"bench --seconds 0", "--seconds"},
      {"bench nothing", "needed nothing, or op matmul MxKxN"},
      {"bench op gelu 1x1x1", "needed nothing, or op matmul MxKxN"},
      {"bench op matmul 1x1", "needed MxKxN"},
      {"bench op matmul 1x1x1 --batch 4", "--batch with bench op"},
      {"bench op matmul", "or op matmul --model NAME"},
      {"bench op matmul --model vit_micro_patch4_16 --batch 1,2",
       "--batch with bench op: needed one"},
      {"bench --resume", "--resume needs --record"},
  };
  for (const auto& [words, message] : wrong) {
    const Outcome outcome = run_bench(words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << words << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace halfwatt

#include "tune/csv.h"

#include <gtest/gtest.h>

#include <clocale>
#include <filesystem>
#include <fstream>
#include <string>

#include "tune/csv_bytes.h"
#include "tune/import_text.h"

namespace halfwatt {
namespace {

CsvTable table(std::string_view text, const CsvLimits& limits = {}) {
  auto read = CsvTable::read(text, "caps.csv", limits);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *std::move(read) : *CsvTable::read("a\nb\n", "caps.csv");
}

std::string table_refusal(std::string_view text, const CsvLimits& limits = {}) {
  const auto read = CsvTable::read(text, "caps.csv", limits);
  return read ? "accepted" : read.error().message;
}

std::filesystem::path written(const std::string& name, std::string_view bytes) {
  auto path = temporary_folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(Csv, reads_names_and_cells_in_order) {
  const CsvTable read = table("watts,ms\n300,1.5\n310,1.4\n");
  ASSERT_EQ(read.columns(), 2U);
  ASSERT_EQ(read.rows(), 2U);
  EXPECT_EQ(read.name(1), "ms");
  EXPECT_EQ(read.cell(1, 0), "310");
  EXPECT_EQ(read.line(1), 3U);
}

TEST(Csv, keeps_its_cells_when_it_is_moved) {
  CsvTable first = table("a\nb\n");
  const CsvTable second = std::move(first);
  EXPECT_EQ(second.cell(0, 0), "b");
}

TEST(Csv, reads_commas_quotes_and_line_ends_inside_quotes) {
  const CsvTable read = table("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n\"two\nlines\",z\nlast,w\n");
  EXPECT_EQ(read.cell(0, 0), "x, y");
  EXPECT_EQ(read.cell(0, 1), "say \"hi\"");
  EXPECT_EQ(read.cell(1, 0), "two\nlines");
  EXPECT_EQ(read.line(2), 5U);
}

TEST(Csv, reads_every_kind_of_line_end_and_a_last_line_without_one) {
  for (const auto* text :
       {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "a,b\n1,2\n3,4"}) {
    const CsvTable read = table(text);
    ASSERT_EQ(read.rows(), 2U) << text;
    EXPECT_EQ(read.cell(1, 1), "4");
    EXPECT_EQ(read.line(1), 3U);
  }
}

TEST(Csv, drops_a_byte_order_mark_comments_above_the_header_and_empty_rows) {
  const CsvTable read =
      table("\xef\xbb\xbf# recorded by hand\n\n  # twice\na,b\n1,2\n\n,\n3,4\n\n\n");
  EXPECT_EQ(read.name(0), "a");
  EXPECT_EQ(read.header_line(), 4U);
  ASSERT_EQ(read.rows(), 2U);
  EXPECT_EQ(read.line(1), 8U);
}

TEST(Csv, keeps_a_hash_below_the_header) {
  EXPECT_EQ(table("run,ms\n#1,2\n").cell(0, 0), "#1");
}

TEST(Csv, drops_blanks_around_cells) {
  const CsvTable read = table("a , b\n 1,\t2 \n \"q\" ,3\n");
  EXPECT_EQ(read.name(1), "b");
  EXPECT_EQ(read.cell(0, 1), "2");
  EXPECT_EQ(read.cell(1, 0), "q");
}

TEST(Csv, refuses_an_empty_file_a_header_alone_and_a_file_without_a_header) {
  EXPECT_EQ(table_refusal(""), "caps.csv: empty; needed a header and rows");
  EXPECT_EQ(table_refusal("\n\n# nothing\n"), "caps.csv: empty; needed a header and rows");
  EXPECT_EQ(table_refusal("a,b\n\n"), "caps.csv:1: a header and no rows below it");
  EXPECT_EQ(table_refusal("300,1.5\n310,1.4\n"),
            "caps.csv:1: no header: the first row holds numbers; needed names such as "
            "power_limit_w");
  EXPECT_EQ(table_refusal(",,\n1,2,3\n"), "caps.csv:1: a header without a name");
}

TEST(Csv, refuses_a_row_with_too_few_or_too_many_cells) {
  EXPECT_EQ(table_refusal("a,b,c\n1,2,3\n4,5\n6,7,8\n"),
            "caps.csv:3: column c: missing: 2 of 3 cells");
  EXPECT_EQ(table_refusal("a,b\n1,2,3\n"),
            "caps.csv:2: 3 cells where the header names 2; put quotes around a cell that holds "
            "a comma");
}

TEST(Csv, says_that_a_file_ends_in_the_middle_of_a_row) {
  EXPECT_EQ(table_refusal("a,b,c\n1,2,3\n4,5"),
            "caps.csv:3: column c: missing: 2 of 3 cells, and the file ends in this row");
}

TEST(Csv, refuses_broken_quotes_and_says_where_they_open) {
  EXPECT_EQ(table_refusal("a,b\n1,\"open\n2,3\n"),
            "caps.csv:2: column b: the quote that opens here is never closed");
  EXPECT_EQ(table_refusal("a,b\n\"x\"y,2\n"),
            "caps.csv:2: column a: text after the closing quote");
  EXPECT_EQ(
      table_refusal("a,b\n1,27\" wide\n"),
      "caps.csv:2: column b: a quote inside a cell; put the cell in quotes and double the "
      "quote");
}

TEST(Csv, refuses_a_name_that_comes_twice) {
  EXPECT_EQ(table_refusal("ms,gpu,MS\n1,2,3\n"), "caps.csv:1: column MS twice");
}

TEST(Csv, says_what_other_kind_of_file_it_was_given) {
  EXPECT_EQ(table_refusal("\x1f\x8b\x08"),
            "caps.csv: is compressed (gzip); unpack it first: gunzip FILE");
  EXPECT_EQ(table_refusal("PK\x03\x04"),
            "caps.csv: is a zip file or a spreadsheet; export it as CSV");
  EXPECT_EQ(table_refusal(std::string("\xff\xfe"
                                      "a\0",
                                      4)),
            "caps.csv: is UTF-16 text; save it as UTF-8");
  EXPECT_EQ(table_refusal("{\"schema\":1}\n"),
            "caps.csv:1: JSON, not CSV; records of halfwatt end in "
            ".jsonl");
  EXPECT_EQ(table_refusal("a;b\n1;2\n"),
            "caps.csv:1: cells are separated by semicolons; needed commas");
  EXPECT_EQ(table_refusal("a\tb\n1\t2\n"),
            "caps.csv:1: cells are separated by tabs; needed commas");
}

TEST(Csv, refuses_binary_bytes_and_names_their_line) {
  EXPECT_EQ(table_refusal(std::string_view("a,b\n1,\0\n", 8)),
            "caps.csv:2: byte 0x00 is no text: a binary file?");
  EXPECT_EQ(table_refusal("a,b\n1,\x1b[31m\n"),
            "caps.csv:2: byte 0x1b is no text: a binary file?");
}

TEST(Csv, refuses_what_is_not_utf8_and_reads_what_is) {
  EXPECT_EQ(table_refusal("gpu\nB\xfcro\n"),
            "caps.csv:2: byte 0xfc is not UTF-8; save it as UTF-8");
  for (const auto* bad : {"\xc0\xaf", "\xc2\x9b", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82", "\x80"}) {
    EXPECT_NE(table_refusal(std::string("gpu\n") + bad + "\n"), "accepted");
  }
  for (const auto* good : {"B\xc3\xbcro", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x94\x8b",
                           "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(table(std::string("gpu\n") + good + "\n").cell(0, 0), good);
  }
}

TEST(Csv, stops_at_its_limits_and_says_which) {
  EXPECT_EQ(table_refusal("a\n1\n", {.file_bytes = 3}), "caps.csv: larger than 0 MiB");
  EXPECT_EQ(table_refusal("a,b,c\n1,2,3\n", {.columns = 2}), "caps.csv:1: more than 2 columns");
  EXPECT_EQ(table_refusal("a\n1\n2\n3\n", {.rows = 2}), "caps.csv:4: more than 2 rows");
  EXPECT_EQ(table_refusal("a\n" + std::string(70'000, 'x') + "\n"),
            "caps.csv:2: a row longer than 64 kB");
  EXPECT_EQ(table_refusal("a,b\n1,\"" + std::string(70'000, 'x')),
            "caps.csv:2: column b: the quote that opens here is not closed for too long");
}

TEST(Csv, reads_a_file_up_to_its_limit_and_not_beyond) {
  const auto path = written("huge.csv", "a\n" + std::string((std::size_t{1} << 20U) - 1, '1'));
  const auto read = read_text_file(path, std::size_t{1} << 20U);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, path.string() + ": larger than 1 MiB");
  EXPECT_TRUE(read_text_file(path, (std::size_t{1} << 20U) + 1));
  std::filesystem::remove_all(path.parent_path());
}

TEST(Csv, says_why_a_file_cannot_be_read) {
  const auto folder = read_text_file(testing::TempDir(), 10);
  ASSERT_FALSE(folder);
  EXPECT_TRUE(folder.error().message.ends_with(": is a folder; needed a file"));
  const auto absent = read_text_file("no/such/caps.csv", 10);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "no/such/caps.csv: No such file or directory");
}

TEST(Csv, names_the_cell_that_holds_no_positive_number) {
  const CsvTable read = table(
      "power_limit_w,ms\nabc,1\nnan,1\ninf,1\n-5,1\n0,1\n,1\n300 W,1\n\"300,5\",1\n1e999,1\n");
  const auto message = [&read](std::size_t row) {
    return read.positive(row, 0, "watts such as 300").error().message;
  };
  EXPECT_EQ(message(0),
            "caps.csv:2: column power_limit_w: 'abc' is not a number; needed watts "
            "such as 300");
  EXPECT_EQ(message(1),
            "caps.csv:3: column power_limit_w: 'nan' is not finite; needed watts such "
            "as 300");
  EXPECT_EQ(message(2),
            "caps.csv:4: column power_limit_w: 'inf' is not finite; needed watts such "
            "as 300");
  EXPECT_EQ(message(3),
            "caps.csv:5: column power_limit_w: '-5' is negative; needed watts such as "
            "300");
  EXPECT_EQ(message(4),
            "caps.csv:6: column power_limit_w: '0' is zero; needed watts such as 300");
  EXPECT_EQ(message(5), "caps.csv:7: column power_limit_w: empty; needed watts such as 300");
  EXPECT_EQ(message(6),
            "caps.csv:8: column power_limit_w: '300 W' is not a number without its "
            "unit; needed watts such as 300");
  EXPECT_EQ(message(7),
            "caps.csv:9: column power_limit_w: '300,5' is not a number; needed watts "
            "such as 300");
  EXPECT_EQ(message(8),
            "caps.csv:10: column power_limit_w: '1e999' is not a number; needed watts "
            "such as 300");
}

TEST(Csv, reads_numbers_whole_or_not_at_all) {
  EXPECT_EQ(parse_number("300"), 300);
  EXPECT_EQ(parse_number("+3.5e2"), 350);
  EXPECT_EQ(parse_number("5627.92431640625"), 5627.92431640625);
  for (const auto* text : {"", "3 ", "3x", "0x10", "+-3", "1_000", "."}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Csv, reads_a_decimal_point_in_a_locale_that_writes_a_comma) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is not installed this tests nothing
  EXPECT_EQ(parse_number("1.5"), 1.5);
  EXPECT_EQ(parse_number("1,5"), std::nullopt);
  std::setlocale(LC_ALL, before.c_str());
}

TEST(Csv, shows_text_on_one_line_without_what_a_terminal_obeys) {
  EXPECT_EQ(one_line("a\nb\x1b[31m"), "a b?[31m");
  EXPECT_EQ(one_line("B\xc3\xbcro \xff"), "B\xc3\xbcro ?");
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
  EXPECT_EQ(one_line("ab\xc3\xbc", 3), "ab...");
}

}  // namespace
}  // namespace halfwatt

#include "engine/formats/safetensors_header.h"

#include <gtest/gtest.h>

#include <ostream>

namespace halfwatt {
namespace {

// The message, or "fine", of a header in front of `data_bytes`.
std::string says(std::string_view json, std::uint64_t data_bytes) {
  const auto header = parse_safetensors_header(json, data_bytes, "f");
  return header ? "fine" : header.error().message;
}

std::string tensor(const std::string& dtype,
                   const std::string& shape,
                   const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}}";
}

TEST(SafetensorsHeader, tells_name_dtype_shape_and_place) {
  const auto header =
      parse_safetensors_header(R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},)"
                               R"("__metadata__":{"format":"pt"},)"
                               R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   )",
                               26, "f");
  ASSERT_TRUE(header);
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(text(header->tensors[0].type), "bf16 scalar");
  EXPECT_EQ(header->tensors[1].name, "b");
  EXPECT_EQ(text(header->tensors[1].type), "f32 2x3");
  EXPECT_EQ(header->tensors[1].offset, 2U);
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->ignored, "");
}

TEST(SafetensorsHeader, knows_every_dtype_by_its_name_in_files) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto header =
        parse_safetensors_header(tensor('"' + std::string(safetensors_name(dtype)) + '"', "[1]",
                                        "[0," + std::to_string(bytes_of(dtype)) + "]"),
                                 bytes_of(dtype), "f");
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->tensors[0].type.dtype, dtype == DType::tf32 ? DType::f32 : dtype);
  }
}

TEST(SafetensorsHeader, takes_what_is_odd_and_legal) {
  EXPECT_EQ(says("{}", 0), "fine");
  EXPECT_EQ(says("\n {}\t ", 0), "fine");
  EXPECT_EQ(says(R"({"__metadata__":{}})", 0), "fine");
  EXPECT_EQ(says(tensor(R"("U8")", "[0]", "[0,0]"), 0), "fine");
  EXPECT_EQ(says(tensor(R"("U8")", "[1,1,1,1,1,1]", "[0,1]"), 1), "fine");
  // A name may be empty or hold anything, and empty tensors may share a place.
  EXPECT_EQ(says(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                 R"("\u0000\n":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                 0),
            "fine");
}

TEST(SafetensorsHeader, ignores_unknown_fields_and_says_so) {
  const auto header = parse_safetensors_header(
      R"({"a":{"dtype":"U8","x\n":[{"y":[1.5,-1,"z",null]}],"shape":[1],)"
      R"("w":true,"data_offsets":[0,1]}})",
      1, "f");
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->ignored,
            R"(tensor "a": field "x\n" is not known; it and others like it are ignored)");
}

struct Bad {
  std::string json;
  std::uint64_t data_bytes;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Bad& bad) {
  return out << bad.json.substr(0, 80);
}

const std::string kOne = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
const std::string kU8 = R"("U8")";

const Bad kBad[] = {
    {"", 0, "the JSON is not complete"},
    {"{", 0, "the JSON is not complete"},
    {"\xff", 0, "byte 0xff at 0 is not JSON"},
    {"\xef\xbb\xbf{}", 0, "byte order mark; needed '{'"},
    {std::string("{}\0\0", 4), 0, "byte 0x00 at 2 is not JSON"},
    {"{}{}", 0, "byte 0x7b at 2 is not JSON"},
    {"{\"\xff\":1}", 0, "byte 0xff at 2 is not JSON in UTF-8"},
    {R"({"\ud800":1})", 0, "is not JSON"},
    {"[]", 0, "header: a list; needed an object"},
    {"1", 0, "header: 1; needed an object"},
    {"null", 0, "header: null; needed an object"},
    {std::string(200'000, '['), 0, "header: a list; needed an object"},
    {R"({"a":)" + std::string(200'000, '['), 0, R"(tensor "a": a list; needed an object)"},
    {R"({"a":{"x":)" + std::string(200'000, '['), 0, "nested deeper than 16"},
    {R"({"a":1})", 0, R"(tensor "a": 1; needed an object)"},
    {R"({"a\n":"b"})", 0, R"(tensor "a\n": "b"; needed an object)"},
    {R"({"__metadata__":{"a":1}})", 0,
     R"(__metadata__, key "a": 1; needed text for every key)"},
    {R"({"__metadata__":{"a":{}}})", 0, "an object; needed text"},
    {R"({"__metadata__":null})", 0, "__metadata__: null; needed an object"},
    {R"({"__metadata__":{"a":"","a":""}})", 0, R"(key "a": there twice)"},
    {R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__: there twice"},
    {"{" + kOne + "," + kOne + "}", 1, R"(tensor "a": there twice; needed once)"},
    {R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, R"(tensor "a": dtype: there twice)"},
    {R"({"a":{}})", 0, R"(tensor "a": dtype is missing)"},
    {R"({"a":{"dtype":"U8","shape":[1]}})", 0, R"(tensor "a": data_offsets is missing)"},
    {tensor(R"("C64")", "[1]", "[0,8]"), 8, R"(dtype: "C64"; needed one of BOOL, U8)"},
    {tensor(R"("f32")", "[1]", "[0,4]"), 4, R"(dtype: "f32"; needed one of)"},
    {tensor("7", "[1]", "[0,1]"), 1, "dtype: 7; needed the name of a dtype"},
    {tensor("[]", "[1]", "[0,1]"), 1, "dtype: a list; needed the name of a dtype"},
    {tensor(kU8, "[-1]", "[0,1]"), 1, "shape: -1; needed a list of whole numbers"},
    {tensor(kU8, "[-0]", "[0,0]"), 0, "shape: 0; needed a list of whole numbers"},
    {tensor(kU8, "[1.0]", "[0,1]"), 1, "shape: 1.0; needed"},
    {tensor(kU8, "[1e0]", "[0,1]"), 1, "shape: 1e0; needed"},
    {tensor(kU8, "[\"1\"]", "[0,1]"), 1, "shape: \"1\"; needed"},
    {tensor(kU8, "[18446744073709551616]", "[0,1]"), 1, "shape: 18446744073709551616; needed"},
    {tensor(kU8, "[[1]]", "[0,1]"), 1, "shape: a list; needed a list of whole numbers"},
    {tensor(kU8, "1", "[0,1]"), 1, "shape: 1; needed a list"},
    {tensor(kU8, "[1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 6 extents; needed at most 6"},
    {tensor(kU8, "[2,18446744073709551614]", "[0,1]"), 1, "overflows 63 bits"},
    {tensor(R"("F64")", "[1152921504606846976]", "[0,1]"), 1, "overflows 63 bits"},
    {tensor(kU8, "[0,9223372036854775808]", "[0,0]"), 0, "overflows 63 bits"},
    {tensor(kU8, "[1]", "[0]"), 1, "data_offsets: 1 numbers; needed begin and end"},
    {tensor(kU8, "[1]", "[0,1,2]"), 1, "data_offsets: more than two numbers"},
    {tensor(kU8, "[1]", "[1,0]"), 1, "data_offsets go back from 1 to 0"},
    {tensor(kU8, "[1]", "[-1,0]"), 1, "data_offsets: -1; needed"},
    {tensor(R"("F32")", "[2]", "[0,7]"), 7, "hold 7 bytes; F32 [2] needs 8"},
    {tensor(kU8, "[1]", "[1,2]"), 2,
     "begins at byte 1 of the data, the one before it ends at 0"
     "; needed no hole"},
    {R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)" + kOne + "}", 2,
     "ends at 1; needed no overlap"},
    {"{" + kOne + "}", 2, "the tensors end at byte 1 of the data, the file at 2"},
    {"{" + kOne + "}", 0, "the tensors end at byte 1 of the data, the file at 0"},
    {"{}", 1, "the tensors end at byte 0 of the data, the file at 1"},
};

class BadHeader : public ::testing::TestWithParam<Bad> {};

TEST_P(BadHeader, is_refused_in_one_line_that_says_what_was_found_and_needed) {
  const std::string message = says(GetParam().json, GetParam().data_bytes);
  EXPECT_TRUE(message.starts_with("f: ")) << message;
  EXPECT_NE(message.find(GetParam().says), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Safetensors, BadHeader, ::testing::ValuesIn(kBad));

TEST(SafetensorsHeader, never_quotes_more_than_fits_a_line) {
  const std::string longest(1'000'000, 'x');
  EXPECT_LT(says("{\"" + longest + "\":1}", 0).size(), 300U);
  EXPECT_LT(says(tensor('"' + longest + '"', "[1]", "[0,1]"), 1).size(), 400U);
  EXPECT_LT(says(tensor("-1." + std::string(1'000'000, '1'), "[1]", "[0,1]"), 1).size(), 300U);
  EXPECT_LT(says("{\"a\":" + longest, 0).size(), 300U);
}

TEST(SafetensorsPrefix, is_believed_only_as_far_as_the_file_goes) {
  const auto says_of = [](const std::string& start, std::uint64_t file_bytes) {
    const auto bytes = safetensors_header_bytes(start, file_bytes, "f");
    return bytes ? std::to_string(*bytes) : bytes.error().message;
  };
  const std::string two("\2\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(says_of(two, 10), "2");
  EXPECT_EQ(says_of(two, 9), "f: ends in its header, which is 2 bytes long; 1 are there");
  EXPECT_EQ(says_of("", 0), "f: has 0 bytes; a safetensors file has at least 10");
  EXPECT_EQ(says_of(two.substr(0, 7), 7), "f: has 7 bytes; a safetensors file has at least 10");
  const std::string huge("\0\0\0\0\0\0\0\x80", 8);
  EXPECT_NE(says_of(huge, 100).find("would be 9223372036854775808 bytes long"),
            std::string::npos);
  const std::string openasr("\x3c\0\0\0\0\xff\xff\xff", 8);
  EXPECT_NE(says_of(openasr, 100).find("needed at most 100000000"), std::string::npos);
  EXPECT_NE(says_of("PK\x03\x04....", 100).find("torch.save"), std::string::npos);
  EXPECT_NE(says_of("version ", 130).find("git lfs pull"), std::string::npos);
}

TEST(SafetensorsStart, is_padded_with_spaces_to_eight_bytes) {
  SafetensorsHeader header;
  header.metadata = {{"a", "b\n\x01"}};
  header.tensors = {{"x", {DType::tf32, Shape{2, 3}}, 0}, {"\xc3\xa9", {DType::u8, {}}, 24}};
  const auto start = safetensors_start(header);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->size() % 8, 0U);
  EXPECT_EQ(static_cast<unsigned char>((*start)[0]) + kSafetensorsPrefix, start->size());
  EXPECT_EQ(start->substr(8, start->find_last_not_of(' ') - 7),
            R"({"__metadata__":{"a":"b\n\u0001"},)"
            R"("x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
            "\"\xc3\xa9\":"
            R"({"dtype":"U8","shape":[],"data_offsets":[24,25]}})");
}

TEST(SafetensorsStart, refuses_names_that_the_format_cannot_hold) {
  const auto says_of = [](std::vector<StoredTensor> tensors) {
    const auto start = safetensors_start({std::move(tensors), {}, {}});
    return start ? "fine" : start.error().message;
  };
  EXPECT_NE(says_of({{"a", {}, 0}, {"a", {}, 4}}).find(R"("a": there twice)"),
            std::string::npos);
  EXPECT_NE(says_of({{"__metadata__", {}, 0}}).find("for itself"), std::string::npos);
  EXPECT_NE(says_of({{"\xff", {}, 0}}).find("UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace halfwatt

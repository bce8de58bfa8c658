#include "engine/formats/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/formats/folder.h"

namespace halfwatt {
namespace {

std::string sum(const std::string& text, std::size_t piece) {
  Sha256 all;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    all.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
  }
  return all.digest();
}

// The examples of FIPS 180-4, and what sha256sum says.
TEST(Sha256, is_that_of_the_standard_however_the_bytes_come) {
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const std::size_t piece : {1U, 7U, 64U, 1000U}) {
    EXPECT_EQ(sum("", piece),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sum("abc", piece),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sum(two_blocks, piece),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sum(std::string(1'000'000, 'a'), piece),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Sha256, of_a_file_is_that_of_its_bytes_and_of_none_an_error) {
  const Folder folder;
  const auto of_file = sha256_of(folder.write("a", "abc"));
  ASSERT_TRUE(of_file) << of_file.error().message;
  EXPECT_EQ(*of_file, sum("abc", 3));
  const std::string large(3'000'001, 'x');
  EXPECT_EQ(*sha256_of(folder.write("b", large)), sum(large, large.size()));
  const auto none = sha256_of(folder.path("none"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::bad_input);
}

}  // namespace
}  // namespace halfwatt

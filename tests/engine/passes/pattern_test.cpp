#include <gtest/gtest.h>

#include "engine/passes/precision.h"

namespace halfwatt {
namespace {

TEST(Pattern, matches_paths_as_a_shell_would) {
  EXPECT_TRUE(matches("blocks.[0-5].*", "blocks.3.attn.qkv"));
  EXPECT_FALSE(matches("blocks.[0-5].*", "blocks.7.attn.qkv"));
  EXPECT_FALSE(matches("blocks.[0-5].*", "blocks.11.attn"));
  EXPECT_TRUE(matches("*norm*", "blocks.3.norm1"));
  EXPECT_TRUE(matches("head", "head"));
  EXPECT_FALSE(matches("head", "head_drop"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("[ab", "[ab"));
  EXPECT_FALSE(matches("****************************x", std::string(60, 'a')));
}

}  // namespace
}  // namespace halfwatt

#include <gtest/gtest.h>

#include "engine/passes/precision.h"

namespace halfwatt {
namespace {

TEST(Pattern, names_a_parameter_by_itself_or_by_a_layer_that_it_is_in) {
  const std::string parameter = "blocks.1.attn.qkv.weight";
  for (const std::string pattern : {"blocks.1.attn.qkv.weight", "blocks.1.attn.qkv", "blocks.1",
                                    "blocks", "blocks.[0-3].*", "*.weight", "*"}) {
    EXPECT_TRUE(any_names({&pattern, 1}, parameter)) << pattern;
  }
  for (const std::string pattern :
       {"", "block", "blocks.", "blocks.10", "qkv", "blocks.1.attn.q"}) {
    EXPECT_FALSE(any_names({&pattern, 1}, parameter)) << pattern;
  }
  EXPECT_FALSE(any_names({}, parameter));
}

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

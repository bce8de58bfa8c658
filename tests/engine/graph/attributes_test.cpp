#include "engine/graph/attributes.h"

#include <gtest/gtest.h>

namespace halfwatt {
namespace {

TEST(Attributes, give_back_what_was_set) {
  const Attributes all{
      {"heads", std::int64_t{12}},          {"eps", 1e-6},          {"transpose_b", true},
      {"path", std::string("blocks.0")},    {"shape", Shape{2, 3}}, {"to", DType::bf16},
      {"mean", std::vector<double>{0.5, 2}}};
  EXPECT_EQ(all.numbers("mean"), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(all.integer("heads"), 12);
  EXPECT_EQ(all.number("eps"), 1e-6);
  EXPECT_TRUE(all.flag("transpose_b"));
  EXPECT_EQ(all.word("path"), "blocks.0");
  EXPECT_EQ(all.shape("shape"), (Shape{2, 3}));
  EXPECT_EQ(all.dtype("to"), DType::bf16);
}

TEST(Attributes, read_in_the_order_in_which_they_were_set_first) {
  Attributes all{{"heads", std::int64_t{12}}, {"eps", 1e-6}};
  all.set("transpose_b", true);
  all.set("heads", std::int64_t{3});
  all.set("shape", Shape{2, 3});
  all.set("to", DType::bf16);
  all.set("path", std::string("blocks.0"));
  all.set("mean", std::vector<double>{0.485F, 0.5});
  EXPECT_EQ(
      text(all),
      "heads=3 eps=1e-06 transpose_b=true shape=2x3 to=bf16 path=blocks.0 mean=0.485,0.5");
  EXPECT_EQ(text(Attributes()), "");
}

TEST(Attributes, take_an_absent_flag_for_false) {
  EXPECT_FALSE(Attributes().flag("transpose_b"));
  EXPECT_FALSE(Attributes().has("transpose_b"));
  EXPECT_TRUE((Attributes{{"transpose_b", false}}.has("transpose_b")));
}

TEST(Attributes, are_equal_if_all_are) {
  const Attributes one{{"eps", 1e-6}};
  EXPECT_EQ(one, (Attributes{{"eps", 1e-6}}));
  EXPECT_NE(one, (Attributes{{"eps", 1e-5}}));
  EXPECT_NE(one, Attributes());
}

TEST(AttributesDeathTest, are_there_and_of_the_type_that_is_asked_for) {
  const Attributes all{{"heads", std::int64_t{12}}};
  EXPECT_DEATH(static_cast<void>(all.integer("eps")), "an attribute that an op needs");
  EXPECT_DEATH(static_cast<void>(all.number("heads")), "an attribute that an op needs");
  EXPECT_DEATH(static_cast<void>(all.flag("heads")), "an attribute that an op needs");
}

}  // namespace
}  // namespace halfwatt

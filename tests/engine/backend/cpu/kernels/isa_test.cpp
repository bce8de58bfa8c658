#include "engine/backend/cpu/kernels/isa.h"

#include <gtest/gtest.h>

#include <string>

namespace halfwatt::cpu {
namespace {

TEST(Isa, is_the_most_that_the_machine_has) {
  EXPECT_TRUE(machine_has(Isa::portable));
  const Isa most = *chosen_isa(nullptr);
  EXPECT_TRUE(machine_has(most));
  for (const Isa isa : kIsas) {
    EXPECT_TRUE(isa <= most || !machine_has(isa));
  }
  EXPECT_EQ(*chosen_isa(""), most);
}

TEST(Isa, is_lowered_by_its_name) {
  for (const Isa isa : kIsas) {
    const auto chosen = chosen_isa(std::string(text(isa)).c_str());
    ASSERT_EQ(chosen.has_value(), machine_has(isa));
    if (chosen) {
      EXPECT_EQ(*chosen, isa);
    } else {
      EXPECT_NE(chosen.error().message.find("this machine has"), std::string::npos);
    }
  }
}

TEST(Isa, that_nobody_knows_is_refused) {
  const auto chosen = chosen_isa("sse9");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().message,
            "HALFWATT_ISA=sse9: it takes portable, avx2, avx512 or avx512_bf16");
}

}  // namespace
}  // namespace halfwatt::cpu

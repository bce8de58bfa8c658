#include "device/nvml_fields.h"

#include <gtest/gtest.h>

#include <cstring>

namespace halfwatt {
namespace {

nvml::FieldValue field(std::uint32_t type, nvml::Value value) {
  nvml::FieldValue made{};
  made.value_type = type;
  made.value = value;
  return made;
}

TEST(NvmlField, is_read_as_the_type_that_it_says) {
  nvml::Value value{};
  value.d = 2.5;
  EXPECT_EQ(number(field(nvml::kDouble, value)), 2.5);
  value.u64 = ~std::uint64_t{0};  // what is left in the rest of the union
  value.u32 = 4'000'000'000;
  EXPECT_EQ(number(field(nvml::kUnsigned32, value)), 4e9);
  value.i32 = -7;
  EXPECT_EQ(number(field(nvml::kSigned32, value)), -7);
  value.u16 = 65'000;
  EXPECT_EQ(number(field(nvml::kUnsigned16, value)), 65'000);
  value.i64 = -3'000'000'000;
  EXPECT_EQ(number(field(nvml::kSigned64, value)), -3e9);
  value.u64 = 1'000'000'000'000;
  EXPECT_EQ(number(field(nvml::kUnsigned64, value)), 1e12);
  EXPECT_EQ(number(field(nvml::kUnsignedLong, value)), 1e12);
}

TEST(NvmlField, is_unknown_where_it_failed_or_its_type_is_new) {
  nvml::Value value{};
  value.u64 = 1;
  EXPECT_EQ(number(field(77, value)), std::nullopt);
  nvml::FieldValue failed = field(nvml::kUnsigned64, value);
  failed.status = nvml::kNotSupported;
  EXPECT_EQ(number(failed), std::nullopt);
}

}  // namespace
}  // namespace halfwatt

#include "engine/tensor/keyed_random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace halfwatt {
namespace {

TEST(Philox, gives_the_published_answers) {
  // The lines "philox4x32 10" of tests/kat_vectors in DEShawResearch/random123 (v1.14.0).
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {0xFFFFFFFF, 0xFFFFFFFF}),
            (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Fnv1a, gives_the_published_answers) {
  // From the test vectors of its authors (Fowler, Noll, Vo; draft-eastlake-fnv).
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325);
  EXPECT_EQ(fnv1a("a"), 0xAF63DC4C8601EC8C);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171F73967E8);
}

TEST(KeyedRandom, is_the_same_in_whatever_order_it_is_asked) {
  const KeyedRandom random(42, "blocks.0.drop", 3);
  std::vector<std::uint32_t> forth;
  for (std::uint64_t element = 0; element < 100; ++element) {
    forth.push_back(random.bits(5, element));
  }
  const KeyedRandom again(42, "blocks.0.drop", 3);
  for (std::uint64_t element = 100; element-- > 0;) {
    EXPECT_EQ(again.bits(5, element), forth[element]);
  }
}

TEST(KeyedRandom, fills_any_part_with_what_it_gives_one_by_one) {
  const KeyedRandom random(42, "blocks.0.drop", 3);
  for (std::uint64_t first = 0; first < 6; ++first) {
    for (std::size_t count = 0; count < 11; ++count) {
      std::vector<std::uint32_t> bits(count);
      std::vector<float> uniform(count);
      random.fill_bits(9, first, bits);
      random.fill_uniform(9, first, uniform);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(bits[i], random.bits(9, first + i));
        EXPECT_EQ(uniform[i], random.uniform(9, first + i));
      }
    }
  }
}

TEST(KeyedRandom, differs_in_every_part_of_its_key) {
  const std::uint64_t high = std::uint64_t{1} << 33;
  std::set<std::uint32_t> seen = {
      KeyedRandom(42, "drop", 3).bits(5, 0),
      KeyedRandom(43, "drop", 3).bits(5, 0),
      KeyedRandom(42 + (std::uint64_t{1} << 40), "drop", 3).bits(5, 0),
      KeyedRandom(42, "drop/2", 3).bits(5, 0),
      KeyedRandom(42, "drop", 4).bits(5, 0),
      KeyedRandom(42, "drop", 3).bits(6, 0),
      KeyedRandom(42, "drop", 3).bits(5 + (std::uint64_t{1} << 40), 0),
      KeyedRandom(42, "drop", 3).bits(5, 1),
      KeyedRandom(42, "drop", 3).bits(5, 4),
      KeyedRandom(42, "drop", 3).bits(5, high),
  };
  EXPECT_EQ(seen.size(), 10U);
}

TEST(KeyedRandom, lays_its_key_out_as_it_says) {
  const KeyedRandom random(0, "drop", 3);
  // SplitMix64's first number of seed 0 is 0xE220A8397B1DCDAF.
  const std::uint64_t key = 0xE220A8397B1DCDAF ^ fnv1a("drop");
  const auto block =
      philox({2, 3, 0x89ABCDEF, 0x01234567},
             {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  EXPECT_EQ(random.block(0x0123456789ABCDEF, 2), block);
  EXPECT_EQ(random.bits(0x0123456789ABCDEF, 11), block[3]);
}

TEST(KeyedRandom, is_uniform) {
  constexpr int kSamples = 100;
  constexpr int kElements = 1000;
  constexpr double kNumbers = kSamples * kElements;
  const KeyedRandom random(1, "uniform", 0);
  double sum = 0;
  double squares = 0;
  std::array<int, 16> bins{};
  std::vector<float> numbers(kElements);
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    random.fill_uniform(sample, 0, numbers);
    for (const float number : numbers) {
      ASSERT_GE(number, 0);
      ASSERT_LT(number, 1);
      sum += number;
      squares += double{number} * number;
      ++bins[static_cast<std::size_t>(number * 16)];
    }
  }
  EXPECT_NEAR(sum / kNumbers, 1.0 / 2, 4 * std::sqrt(1 / 12.0 / kNumbers));
  EXPECT_NEAR(squares / kNumbers, 1.0 / 3, 4 * std::sqrt(4 / 45.0 / kNumbers));
  for (const int bin : bins) {
    EXPECT_NEAR(bin, kNumbers / 16, 4 * std::sqrt(kNumbers * 15) / 16);
  }
}

TEST(KeyedRandom, keeps_with_the_probability_asked) {
  constexpr int kDraws = 100'000;
  const KeyedRandom random(1, "keep", 0);
  const auto kept = [&](float probability) {
    int times = 0;
    for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
      times += random.keep(sample, 0, probability) ? 1 : 0;
    }
    return times;
  };
  EXPECT_EQ(kept(0), 0);
  EXPECT_EQ(kept(1), kDraws);
  EXPECT_NEAR(kept(.9F), .9 * kDraws, 4 * std::sqrt(.9 * .1 * kDraws));
}

TEST(KeyedRandom, has_no_one_as_its_largest_number) {
  EXPECT_EQ(KeyedRandom::to_uniform(0), 0.0F);
  EXPECT_EQ(KeyedRandom::to_uniform(0xFFFFFFFF), 1 - 0x1p-24F);
}

TEST(KeyedRandomDeathTest, has_room_for_so_many_attempts) {
  EXPECT_DEATH(KeyedRandom(1, "drop", std::uint64_t{1} << 32), "more attempts");
}

}  // namespace
}  // namespace halfwatt

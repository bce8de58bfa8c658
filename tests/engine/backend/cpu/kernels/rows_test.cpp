#include <utility>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

constexpr Index kRows = 67;
constexpr Index kWidth = 53;

TEST(Rows, are_added_with_one_rounding) {
  for_all([]<class E>(Isa isa, E) {
    const auto a = numbers<E>(kRows * kWidth, 1);
    const auto b = numbers<E>(kRows * kWidth, 2);
    const auto bias = numbers<Real<E>>(kWidth, 3);
    std::vector<E> y(a.size());
    Workers workers(2);
    kernels<E>(isa).add(workers, {kRows * kWidth, a.data(), b.data(), y.data()});
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], element<E>(value(static_cast<Real<E>>(value(a[i]) + value(b[i])))));
    }
    kernels<E>(isa).add_rows(workers, {kRows, kWidth, a.data(), bias.data(), y.data()});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double sum = value(a[i]) + value(bias[i % kWidth]);
      ASSERT_EQ(y[i], element<E>(value(static_cast<Real<E>>(sum))));
    }
  });
}

TEST(Rows, are_summed_in_an_order_that_threads_do_not_change) {
  for_all([]<class E>(Isa isa, E) {
    const auto x = numbers<E>(kRows * kWidth, 1);
    std::vector<Real<E>> one(kWidth);
    std::vector<Real<E>> three(kWidth);
    Workspace workspace(kernels<E>(isa).sum_rows_bytes(kRows, kWidth));
    Workers alone(1);
    Workers many(3);
    kernels<E>(isa).sum_rows(alone, {kRows, kWidth, x.data(), one.data(), workspace.data()});
    kernels<E>(isa).sum_rows(many, {kRows, kWidth, x.data(), three.data(), workspace.data()});
    EXPECT_TRUE(same_bits(one, three));
    for (std::size_t j = 0; j < one.size(); ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t row = 0; row < kRows; ++row) {
        sum += value(x[row * kWidth + j]);
        magnitude += std::abs(value(x[row * kWidth + j]));
      }
      // n terms in any order: within n u of the sum of magnitudes, twice as the reference
      // rounds too.
      ASSERT_NEAR(value(one[j]), sum, 2 * kRows * kUnit<E> * magnitude);
    }
  });
}

TEST(Rows, that_are_none_sum_to_zero) {
  for_all([]<class E>(Isa isa, E) {
    std::vector<Real<E>> y(5, Real<E>(7));
    Workspace workspace(kernels<E>(isa).sum_rows_bytes(0, 5));
    Workers workers(2);
    kernels<E>(isa).sum_rows(workers, {0, 5, nullptr, y.data(), workspace.data()});
    EXPECT_EQ(y, std::vector<Real<E>>(5, 0));
  });
}

TEST(Rows, are_scaled_each_by_its_factor) {
  for_all([]<class E>(Isa isa, E) {
    const auto x = numbers<E>(3 * kWidth, 1);
    const std::vector<Real<E>> factors = {0, 2, Real<E>(1.25)};
    std::vector<E> y(x.size());
    Workers workers(2);
    kernels<E>(isa).scale_rows(workers, {3, kWidth, x.data(), factors.data(), y.data()});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double wanted = value(x[i]) * value(factors[i / kWidth]);
      ASSERT_EQ(value(y[i]), value(element<E>(value(static_cast<Real<E>>(wanted)))));
    }
  });
}

TEST(Rows, that_are_rounded_to_bf16_go_to_nearest_even) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    // The vectors of the facts, added to what changes no number.
    const std::vector<std::pair<std::uint32_t, Bf16>> pairs = {
        {0x3F808000, 0x3F80}, {0x3F808001, 0x3F81}, {0x3F818000, 0x3F82}, {0x7F7F7FFF, 0x7F7F},
        {0x7F7F8000, 0x7F80}, {0x7F800001, 0x7FC0}, {0x00008000, 0x0000}, {0x00008001, 0x0001},
        {0xFF800000, 0xFF80}, {0x80000000, 0x8000}};
    std::vector<float> exact;
    std::vector<Bf16> wanted;
    for (const auto& [bits, rounded] : pairs) {
      exact.push_back(std::bit_cast<float>(bits));
      wanted.push_back(rounded);
    }
    const std::vector<Bf16> minus_zeros(exact.size(), 0x8000);
    std::vector<Bf16> stored(exact.size());
    Workers workers(1);
    kernels<Bf16>(isa).add_rows(workers, {1, static_cast<Index>(exact.size()),
                                          minus_zeros.data(), exact.data(), stored.data()});
    for (std::size_t i = 0; i < stored.size(); ++i) {
      EXPECT_EQ(stored[i], wanted[i]) << i;
    }
  }
}

}  // namespace
}  // namespace halfwatt::cpu

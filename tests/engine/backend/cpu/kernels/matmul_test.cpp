#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

struct Case {
  Index m, n, k;
  bool a_transposed = false;
  bool b_transposed = false;
  bool bias = false;
};

constexpr Index kGap = 3;  // rows of every matrix lie this much apart

template <class E>
void run(Isa isa, int threads, Matmul<E> job) {
  Workers workers(threads);
  Workspace workspace(kernels<E>(isa).matmul_bytes(workers, job));
  job.workspace = workspace.data();
  kernels<E>(isa).matmul(workers, job);
}

template <class E>
std::vector<E> product(Isa isa, const Case& of, int threads) {
  const auto stride = [](bool transposed, Index rows, Index columns) {
    return (transposed ? rows : columns) + kGap;
  };
  const Index a_stride = stride(of.a_transposed, of.m, of.k);
  const Index b_stride = stride(of.b_transposed, of.k, of.n);
  const auto a = numbers<E>((of.a_transposed ? of.k : of.m) * a_stride, 1);
  const auto b = numbers<E>((of.b_transposed ? of.n : of.k) * b_stride, 2);
  const auto bias = numbers<Real<E>>(of.n, 3);
  auto c = numbers<E>(of.m * (of.n + kGap), 4);
  run<E>(isa, threads,
         {.m = of.m,
          .n = of.n,
          .k = of.k,
          .a = a.data(),
          .a_stride = a_stride,
          .a_transposed = of.a_transposed,
          .b = b.data(),
          .b_stride = b_stride,
          .b_transposed = of.b_transposed,
          .bias = of.bias ? bias.data() : nullptr,
          .c = c.data(),
          .c_stride = of.n + kGap});
  return c;
}

/// Against sums in long double. A sum of k products and two more terms is within
/// (k + 2) u of the sum of their magnitudes, whatever the order (Higham, gamma_k), and it is
/// rounded once when it is stored.
template <class E>
void expect_right(Isa isa, const Case& of) {
  SCOPED_TRACE(testing::Message() << of.m << "x" << of.k << "x" << of.n << " transposed "
                                  << of.a_transposed << of.b_transposed);
  const Index a_stride = (of.a_transposed ? of.m : of.k) + kGap;
  const Index b_stride = (of.b_transposed ? of.k : of.n) + kGap;
  const auto a = numbers<E>((of.a_transposed ? of.k : of.m) * a_stride, 1);
  const auto b = numbers<E>((of.b_transposed ? of.n : of.k) * b_stride, 2);
  const auto bias = numbers<Real<E>>(of.n, 3);
  const auto before = numbers<E>(of.m * (of.n + kGap), 4);
  const auto c = product<E>(isa, of, 2);
  const auto at = [](const auto& matrix, bool transposed, Index stride, Index i, Index j) {
    return static_cast<long double>(
        value(matrix[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)]));
  };
  for (Index i = 0; i < of.m; ++i) {
    for (Index j = 0; j < of.n + kGap; ++j) {
      const auto place = static_cast<std::size_t>(i * (of.n + kGap) + j);
      if (j >= of.n) {
        ASSERT_EQ(c[place], before[place]) << "wrote between rows";
        continue;
      }
      long double wanted =
          of.bias ? static_cast<long double>(bias[static_cast<std::size_t>(j)]) : 0;
      long double magnitude = std::abs(wanted) + 1;
      for (Index k = 0; k < of.k; ++k) {
        const long double term =
            at(a, of.a_transposed, a_stride, i, k) * at(b, of.b_transposed, b_stride, k, j);
        wanted += term;
        magnitude += std::abs(term);
      }
      const long double bound = static_cast<long double>(of.k + 2) * kUnit<E> * magnitude +
                                kStoreUnit<E> * std::abs(wanted);
      const auto got = static_cast<long double>(value(c[place]));
      ASSERT_LE(std::abs(got - wanted), bound) << i << " " << j;
    }
  }
}

TEST(Matmul, is_within_the_bound_of_its_length_at_odd_sizes) {
  for_all([]<class E>(Isa isa, E) {
    for (const Case& one :
         {Case{1, 1, 1}, Case{1, 10, 192}, Case{13, 33, 17}, Case{12, 32, 256},
          Case{25, 65, 257}, Case{197, 71, 64}, Case{3, 1000, 5}, Case{400, 3, 300},
          Case{5, 7, 0}, Case{7, 70, 3080}, Case{64, 70, 1100, true}}) {
      expect_right<E>(isa, one);
    }
  });
}

TEST(Matmul, takes_transposes_and_a_bias) {
  for_all([]<class E>(Isa isa, E) {
    for (int flags = 0; flags < 8; ++flags) {
      expect_right<E>(isa, {.m = 29,
                            .n = 45,
                            .k = 300,
                            .a_transposed = (flags & 1) != 0,
                            .b_transposed = (flags & 2) != 0,
                            .bias = (flags & 4) != 0});
    }
  });
}

TEST(Matmul, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const Case one{.m = 210, .n = 130, .k = 270, .bias = true};
    const auto alone = product<E>(isa, one, 1);
    EXPECT_TRUE(same_bits(alone, product<E>(isa, one, 1)));
    EXPECT_TRUE(same_bits(alone, product<E>(isa, one, 2)));
    EXPECT_TRUE(same_bits(alone, product<E>(isa, one, 5)));
  });
}

TEST(Matmul, computes_a_row_alike_wherever_it_stands) {
  for_all([]<class E>(Isa isa, E) {
    constexpr Index kRows = 27;
    constexpr Index kWidth = 50;
    auto a = numbers<E>(kRows * 300, 1);
    for (Index row = 1; row < kRows; ++row) {  // all rows the same
      std::copy_n(a.begin(), 300, a.begin() + row * 300);
    }
    const auto b = numbers<E>(300 * kWidth, 2);
    std::vector<E> c(kRows * kWidth);
    run<E>(isa, 1,
           {.m = kRows,
            .n = kWidth,
            .k = 300,
            .a = a.data(),
            .a_stride = 300,
            .b = b.data(),
            .b_stride = kWidth,
            .c = c.data(),
            .c_stride = kWidth});
    for (Index row = 1; row < kRows; ++row) {
      ASSERT_TRUE(std::equal(c.begin(), c.begin() + kWidth, c.begin() + row * kWidth));
    }
  });
}

// VDPBF16PS takes what is no normal number for 0; whoever computes it must be within that.
TEST(Matmul, of_bf16_loses_at_most_numbers_that_are_not_normal) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    constexpr Index kDepth = 33;
    const std::vector<Bf16> a(kDepth, element<Bf16>(0x1p-130));
    const std::vector<Bf16> b(kDepth, element<Bf16>(0x1p120));
    Bf16 c = 0;
    run<Bf16>(isa, 1,
              {.m = 1,
               .n = 1,
               .k = kDepth,
               .a = a.data(),
               .a_stride = kDepth,
               .b = b.data(),
               .b_stride = 1,
               .c = &c,
               .c_stride = 1});
    EXPECT_NEAR(value(c), kDepth * 0x1p-10, kDepth * 0x1p-126 * 0x1p120) << text(isa);
    EXPECT_GE(value(c), 0);
  }
}

TEST(Matmul, of_4096_ones_is_4096) {
  for_all([]<class E>(Isa isa, E) {
    const std::vector<E> ones(4096, element<E>(1));
    E c = element<E>(0);
    run<E>(isa, 1,
           {.m = 1,
            .n = 1,
            .k = 4096,
            .a = ones.data(),
            .a_stride = 4096,
            .b = ones.data(),
            .b_stride = 1,
            .c = &c,
            .c_stride = 1});
    EXPECT_EQ(value(c), 4096);
  });
}

TEST(Matmul, keeps_a_nan_in_its_row) {
  for_all([]<class E>(Isa isa, E) {
    auto a = numbers<E>(3 * 40, 1);
    a[40 + 7] = element<E>(std::numeric_limits<double>::infinity());
    a[40 + 8] = element<E>(-std::numeric_limits<double>::infinity());
    const std::vector<E> b(40 * 5, element<E>(1));
    std::vector<E> c(3 * 5);
    run<E>(isa, 1,
           {.m = 3,
            .n = 5,
            .k = 40,
            .a = a.data(),
            .a_stride = 40,
            .b = b.data(),
            .b_stride = 5,
            .c = c.data(),
            .c_stride = 5});
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(std::isnan(value(c[i])), i / 5 == 1);
    }
  });
}

}  // namespace
}  // namespace halfwatt::cpu

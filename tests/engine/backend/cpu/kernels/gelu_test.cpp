#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

template <class E>
std::vector<E> gelu(Isa isa, const std::vector<E>& x, int threads = 1) {
  std::vector<E> y(x.size());
  Workers workers(threads);
  kernels<E>(isa).gelu_forward(
      workers, {.count = static_cast<Index>(x.size()), .x = x.data(), .y = y.data()});
  return y;
}

template <class E>
std::vector<E> slope(Isa isa, const std::vector<E>& x) {
  const std::vector<E> ones(x.size(), element<E>(1));
  std::vector<E> dx(x.size());
  Workers workers(1);
  kernels<E>(isa).gelu_backward(workers, {.count = static_cast<Index>(x.size()),
                                          .dy = ones.data(),
                                          .x = x.data(),
                                          .dx = dx.data()});
  return dx;
}

double cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0)); }

TEST(Gelu, agrees_with_the_vectors_of_the_facts) {
  for_all([]<class E>(Isa isa, E) {
    const auto y = gelu<E>(isa, {element<E>(-5), element<E>(-1), element<E>(1), element<E>(3)});
    const double unit = 2 * kStoreUnit<E>;
    // Relative, though 1 + erf cancels there to one digit: the tail is computed as such, by a
    // polynomial that was fitted to 1e-4 of it.
    EXPECT_NEAR(value(y[0]), -1.43326e-6, 1.43326e-6 * (unit + 1e-4));
    EXPECT_NEAR(value(y[1]), -0.15865525, 0.16 * unit + 1e-8);
    EXPECT_NEAR(value(y[2]), 0.84134475, unit + 1e-8);
    EXPECT_NEAR(value(y[3]), 2.99595031, 3 * unit + 1e-8);
    const auto d = slope<E>(isa, {element<E>(0), element<E>(1), element<E>(-1)});
    EXPECT_NEAR(value(d[0]), 0.5, unit);
    EXPECT_NEAR(value(d[1]), 1.08331547, unit + 1e-8);
    EXPECT_NEAR(value(d[2]), -0.08331547, unit + 1e-8);
  });
}

TEST(Gelu, has_an_erf_within_a_ten_millionth_everywhere) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    std::vector<float> x;
    for (double at = -12; at <= 12; at += 0x1p-14) {
      x.push_back(static_cast<float>(at));
    }
    const auto y = gelu(isa, x);
    const auto d = slope(isa, x);
    double of_cdf = 0;
    double of_slope = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double at = value(x[i]);
      if (std::abs(at) > 1e-3) {
        // y / x is the distribution function, and rounding the product adds one unit.
        of_cdf = std::max(of_cdf, std::abs(value(y[i]) / at - cdf(at)) - cdf(at) * 0x1p-24);
      }
      of_slope = std::max(of_slope, std::abs(value(d[i]) - cdf(at) - at * density(at)));
    }
    // Half of erf's error, and rounding the sum with 0.5 to a number up to 1.
    EXPECT_LE(of_cdf, 0.5e-7 + 0x1p-25);
    EXPECT_LE(of_slope, 3e-7);  // of the order of five roundings of numbers up to 1.13
  }
}

TEST(Gelu, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const auto x = numbers<E>(40001, 1);
    EXPECT_TRUE(same_bits(gelu(isa, x, 1), gelu(isa, x, 2)));
  });
}

TEST(Gelu, passes_what_is_not_finite_on) {
  for_all([]<class E>(Isa isa, E) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto y = gelu<E>(
        isa, {element<E>(std::numeric_limits<double>::quiet_NaN()), element<E>(infinity),
              element<E>(-infinity), element<E>(1e30), element<E>(-1e30)});
    EXPECT_TRUE(std::isnan(value(y[0])));
    EXPECT_EQ(value(y[1]), infinity);
    EXPECT_TRUE(std::isnan(value(y[2])));  // -inf times 0, as in PyTorch
    EXPECT_EQ(y[3], element<E>(1e30));
    EXPECT_EQ(value(y[4]), 0);
  });
}

}  // namespace
}  // namespace halfwatt::cpu

#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

template <class E>
struct Normalised {
  std::vector<E> y, sum;
  std::vector<Real<E>> mean, rstd;
};

template <class E>
struct Input {
  Index rows, width;
  std::vector<E> x, residual;
  std::vector<Real<E>> gamma, beta;
  double epsilon = 1e-6;
};

template <class E>
Input<E> random_input(Index rows, Index width) {
  return {rows,
          width,
          numbers<E>(rows * width, 1),
          {},
          numbers<Real<E>>(width, 2),
          numbers<Real<E>>(width, 3)};
}

/// Rows with gamma 1 and beta 0.
template <class E>
Input<E> plain_input(std::vector<E> x, double epsilon) {
  const auto width = static_cast<Index>(x.size());
  return {1,
          width,
          std::move(x),
          {},
          std::vector<Real<E>>(static_cast<std::size_t>(width), 1),
          std::vector<Real<E>>(static_cast<std::size_t>(width), 0),
          epsilon};
}

template <class E>
Normalised<E> normalise(Isa isa, const Input<E>& input, int threads = 1) {
  const auto rows = static_cast<std::size_t>(input.rows);
  Normalised<E> out{std::vector<E>(input.x.size()), std::vector<E>(input.residual.size()),
                    std::vector<Real<E>>(rows), std::vector<Real<E>>(rows)};
  Workers workers(threads);
  kernels<E>(isa).layer_norm_forward(
      workers, {.rows = input.rows,
                .width = input.width,
                .x = input.x.data(),
                .residual = input.residual.empty() ? nullptr : input.residual.data(),
                .sum = input.residual.empty() ? nullptr : out.sum.data(),
                .gamma = input.gamma.data(),
                .beta = input.beta.data(),
                .epsilon = static_cast<Real<E>>(input.epsilon),
                .y = out.y.data(),
                .mean = out.mean.data(),
                .rstd = out.rstd.data()});
  return out;
}

template <class E>
struct Gradients {
  std::vector<E> dx;
  std::vector<Real<E>> dgamma, dbeta;
};

template <class E>
Gradients<E> gradients(Isa isa,
                       const Input<E>& input,
                       const std::vector<E>& dy,
                       const E* residual = nullptr,
                       int threads = 1) {
  const Normalised<E> forward = normalise(isa, input);
  const auto width = static_cast<std::size_t>(input.width);
  Gradients<E> out{std::vector<E>(dy.size()), std::vector<Real<E>>(width),
                   std::vector<Real<E>>(width)};
  Workers workers(threads);
  Workspace workspace(kernels<E>(isa).layer_norm_backward_bytes(input.rows, input.width));
  kernels<E>(isa).layer_norm_backward(workers, {.rows = input.rows,
                                                .width = input.width,
                                                .dy = dy.data(),
                                                .x = input.x.data(),
                                                .gamma = input.gamma.data(),
                                                .mean = forward.mean.data(),
                                                .rstd = forward.rstd.data(),
                                                .residual = residual,
                                                .dx = out.dx.data(),
                                                .dgamma = out.dgamma.data(),
                                                .dbeta = out.dbeta.data(),
                                                .workspace = workspace.data()});
  return out;
}

std::vector<double> reference(const auto& input) {
  std::vector<double> y;
  const auto width = static_cast<std::size_t>(input.width);
  for (std::size_t row = 0; row < input.x.size(); row += width) {
    double mean = 0;
    double variance = 0;
    for (std::size_t j = 0; j < width; ++j) {
      mean += value(input.x[row + j]) / static_cast<double>(width);
    }
    for (std::size_t j = 0; j < width; ++j) {
      variance += std::pow(value(input.x[row + j]) - mean, 2) / static_cast<double>(width);
    }
    for (std::size_t j = 0; j < width; ++j) {
      y.push_back((value(input.x[row + j]) - mean) / std::sqrt(variance + input.epsilon) *
                      value(input.gamma[j]) +
                  value(input.beta[j]));
    }
  }
  return y;
}

TEST(LayerNorm, agrees_with_its_definition_at_odd_widths) {
  for_all([]<class E>(Isa isa, E) {
    for (const Index width : {1, 3, 17, 64, 192, 768, 1027}) {
      SCOPED_TRACE(width);
      const auto input = random_input<E>(5, width);
      // Sums of `width` random terms: roundings add up like sqrt(width), and there are the
      // store and a few operations.
      const double bound =
          4 * (std::sqrt(static_cast<double>(width)) + 4) * kUnit<E> + kStoreUnit<E>;
      EXPECT_LE(error_of(normalise(isa, input).y, reference(input)), bound);
    }
  });
}

TEST(LayerNorm, makes_a_constant_row_exactly_beta) {
  for_all([]<class E>(Isa isa, E) {
    for (const double constant : {0.0, 1000.1, -3e-5, 65504.0}) {
      auto input = random_input<E>(1, 768);
      std::fill(input.x.begin(), input.x.end(), element<E>(constant));
      const auto out = normalise(isa, input);
      EXPECT_EQ(out.y, converted<E>(input.beta));
      EXPECT_NEAR(value(out.rstd[0]), 1000, 1e-3);
      input.epsilon = 1e-5;
      EXPECT_NEAR(value(normalise(isa, input).rstd[0]), 316.2278, 1e-4);
    }
  });
}

TEST(LayerNorm, agrees_with_the_vectors_of_the_facts) {
  for_all([]<class E>(Isa isa, E) {
    const auto small = normalise(
        isa,
        plain_input<E>({element<E>(1), element<E>(2), element<E>(3), element<E>(4)}, 1e-6));
    const double bound = 2 * kStoreUnit<E> + 1e-8;
    EXPECT_NEAR(value(small.y[0]), -1.34164025, bound);
    EXPECT_NEAR(value(small.y[1]), -0.44721341, bound);
    EXPECT_NEAR(value(small.y[3]), 1.34164025, bound);
    std::vector<E> steps;
    for (int i = 0; i < 768; ++i) {
      steps.push_back(element<E>((std::is_same_v<E, Bf16> ? 128 : 4096) + i % 2));
    }
    const auto step = normalise(isa, plain_input<E>(steps, 1e-6));
    EXPECT_NEAR(value(step.y[0]), -0.999998, bound + 1e-7);
    EXPECT_NEAR(value(step.y[1]), 0.999998, bound + 1e-7);
  });
}

TEST(LayerNorm, of_a_sum_is_that_of_the_sum_as_stored) {
  for_all([]<class E>(Isa isa, E) {
    auto input = random_input<E>(7, 100);
    input.residual = numbers<E>(700, 9);
    const auto fused = normalise(isa, input);
    auto stored = input;
    stored.residual.clear();
    stored.x = fused.sum;
    for (std::size_t i = 0; i < stored.x.size(); ++i) {
      ASSERT_EQ(stored.x[i], element<E>(value(static_cast<Real<E>>(value(input.x[i]) +
                                                                   value(input.residual[i])))));
    }
    EXPECT_TRUE(same_bits(fused.y, normalise(isa, stored).y));
  });
}

TEST(LayerNorm, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const auto input = random_input<E>(301, 95);
    const auto dy = numbers<E>(301 * 95, 5);
    EXPECT_TRUE(same_bits(normalise(isa, input, 1).y, normalise(isa, input, 3).y));
    const auto one = gradients(isa, input, dy, input.x.data(), 1);
    const auto three = gradients(isa, input, dy, input.x.data(), 3);
    EXPECT_TRUE(same_bits(one.dx, three.dx));
    EXPECT_TRUE(same_bits(one.dgamma, three.dgamma));
    EXPECT_TRUE(same_bits(one.dbeta, three.dbeta));
  });
}

TEST(LayerNorm, of_a_row_does_not_depend_on_where_it_lies) {
  for_all([]<class E>(Isa isa, E) {
    const auto input = random_input<E>(1, 197);
    const auto wanted = normalise(isa, input);
    // 16 rows of odd width: every alignment of an element within a vector.
    auto many = random_input<E>(16, 197);
    for (Index row = 0; row < 16; ++row) {
      std::copy(input.x.begin(), input.x.end(), many.x.begin() + row * 197);
    }
    const auto got = normalise(isa, many);
    for (Index row = 0; row < 16; ++row) {
      EXPECT_TRUE(std::equal(wanted.y.begin(), wanted.y.end(), got.y.begin() + row * 197));
    }
  });
}

TEST(LayerNorm, keeps_a_nan_in_its_row) {
  for_all([]<class E>(Isa isa, E) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      auto input = random_input<E>(3, 50);
      input.x[50 + 20] = element<E>(bad);
      const auto out = normalise(isa, input);
      for (std::size_t i = 0; i < out.y.size(); ++i) {
        ASSERT_EQ(std::isnan(value(out.y[i])), i / 50 == 1);
      }
    }
  });
}

TEST(LayerNorm, has_the_gradients_of_finite_differences) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    auto input = random_input<double>(4, 19);
    const auto dy = numbers<double>(76, 5);
    const auto extra = numbers<double>(76, 6);
    const auto loss = [&] {
      const auto y = normalise(isa, input).y;
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        sum += y[i] * dy[i];
      }
      return sum;
    };
    const auto got = gradients(isa, input, dy);
    const auto by_x = slopes(input.x, loss);
    EXPECT_LE(error_of(got.dx, by_x), kSlopeError);
    EXPECT_LE(error_of(got.dgamma, slopes(input.gamma, loss)), kSlopeError);
    EXPECT_LE(error_of(got.dbeta, slopes(input.beta, loss)), kSlopeError);
    auto with_extra = by_x;
    for (std::size_t i = 0; i < extra.size(); ++i) {
      with_extra[i] += extra[i];
    }
    EXPECT_LE(error_of(gradients(isa, input, dy, extra.data()).dx, with_extra), kSlopeError);
  }
}

TEST(LayerNorm, has_gradients_that_agree_with_those_in_double) {
  for_all([]<class E>(Isa isa, E) {
    const auto input = random_input<E>(200, 192);
    const auto dy = numbers<E>(200 * 192, 5);
    const Input<double> exact{200,
                              192,
                              converted<double>(input.x),
                              {},
                              converted<double>(input.gamma),
                              converted<double>(input.beta)};
    const auto got = gradients(isa, input, dy);
    const auto wanted = gradients(Isa::portable, exact, converted<double>(dy));
    // As forward, over width for dx and over rows for the others.
    const double bound = 4 * (std::sqrt(200.0) + 4) * kUnit<E>;
    EXPECT_LE(error_of(got.dx, wanted.dx), bound + kStoreUnit<E>);
    EXPECT_LE(error_of(got.dgamma, wanted.dgamma), bound);
    EXPECT_LE(error_of(got.dbeta, wanted.dbeta), bound);
  });
}

}  // namespace
}  // namespace halfwatt::cpu

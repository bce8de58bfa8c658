#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

struct Layer {
  Index rows, width, features;
  bool bias = true;
  bool gelu = false;
};

/// [features, width] as the kernels of `isa` read them.
template <class E>
std::vector<E> in_panels(Isa isa, const Layer& of, const std::vector<E>& weights) {
  const auto [columns, steps] = kernels<E>(isa).panels;
  std::vector<E> panels;
  for (Index first = 0; first < of.features; first += columns) {
    for (Index step = 0; step < of.width; step += steps) {
      for (Index row = first; row < first + columns; ++row) {
        for (Index k = step; k < step + steps; ++k) {
          panels.push_back(weights[static_cast<std::size_t>(row * of.width + k)]);
        }
      }
    }
  }
  return panels;
}

template <class E>
struct Data {
  explicit Data(const Layer& of)
      : x(numbers<E>(of.rows * of.width, 1)),
        weights(numbers<E>(of.features * of.width, 2)),
        bias(numbers<Real<E>>(of.features, 3)) {}
  std::vector<E> x;
  std::vector<E> weights;
  std::vector<Real<E>> bias;
};

template <class E>
std::vector<E> linear(Isa isa, const Layer& of, const Data<E>& data, int threads = 2) {
  const auto panels = in_panels(isa, of, data.weights);
  std::vector<E> y(static_cast<std::size_t>(of.rows * of.features));
  Workers workers(threads);
  Workspace workspace(kernels<E>(isa).linear_bytes(of.rows, of.width, threads));
  kernels<E>(isa).linear(workers, {.rows = of.rows,
                                   .width = of.width,
                                   .features = of.features,
                                   .x = data.x.data(),
                                   .panels = panels.data(),
                                   .bias = of.bias ? data.bias.data() : nullptr,
                                   .gelu = of.gelu,
                                   .y = y.data(),
                                   .workspace = workspace.data()});
  return y;
}

/// As matmul's test bounds it, and rounded once when it is stored.
template <class E>
void expect_right(Isa isa, const Layer& of) {
  SCOPED_TRACE(testing::Message() << of.rows << "x" << of.width << "x" << of.features);
  const Data<E> data(of);
  const auto y = linear<E>(isa, of, data);
  for (Index i = 0; i < of.rows; ++i) {
    for (Index j = 0; j < of.features; ++j) {
      long double wanted = of.bias ? value(data.bias[static_cast<std::size_t>(j)]) : 0;
      long double magnitude = std::abs(wanted) + 1;
      for (Index k = 0; k < of.width; ++k) {
        const long double term =
            static_cast<long double>(
                value(data.x[static_cast<std::size_t>(i * of.width + k)])) *
            value(data.weights[static_cast<std::size_t>(j * of.width + k)]);
        wanted += term;
        magnitude += std::abs(term);
      }
      const long double bound = static_cast<long double>(of.width + 2) * kUnit<E> * magnitude +
                                kStoreUnit<E> * std::abs(wanted);
      const double got = value(y[static_cast<std::size_t>(i * of.features + j)]);
      ASSERT_LE(std::abs(static_cast<long double>(got) - wanted), bound) << i << " " << j;
    }
  }
}

// Panels of every ISA and format divide 64.
TEST(Linear, is_within_the_bound_of_its_length_for_few_and_many_rows) {
  for_all([]<class E>(Isa isa, E) {
    for (const Layer& one :
         {Layer{1, 2, 64}, Layer{1, 192, 128}, Layer{5, 34, 64}, Layer{12, 64, 64},
          Layer{197, 64, 192}, Layer{61, 770, 64}, Layer{197, 2, 64, false}}) {
      expect_right<E>(isa, one);
    }
  });
}

TEST(Linear, is_the_same_bits_for_every_number_of_threads_and_rows_beside) {
  for_all([]<class E>(Isa isa, E) {
    const Layer of{197, 192, 192};
    const Data<E> data(of);
    const auto two = linear<E>(isa, of, data, 2);
    EXPECT_TRUE(same_bits(linear<E>(isa, of, data, 1), two));
    EXPECT_TRUE(same_bits(linear<E>(isa, of, data, 7), two));
    const Layer fewer{50, 192, 192};
    const auto some = linear<E>(isa, fewer, data);
    EXPECT_TRUE(same_bits(some, std::vector<E>(two.begin(), two.begin() + 50 * 192)));
  });
}

TEST(Linear, has_the_bits_of_a_linear_layer_and_a_gelu_behind_it) {
  for_all([]<class E>(Isa isa, E) {
    Layer of{31, 96, 128};
    const Data<E> data(of);
    const auto x = linear<E>(isa, of, data);
    std::vector<E> wanted(x.size());
    Workers workers(1);
    kernels<E>(isa).gelu_forward(
        workers, {.count = static_cast<Index>(x.size()), .x = x.data(), .y = wanted.data()});
    of.gelu = true;
    EXPECT_TRUE(same_bits(linear<E>(isa, of, data), wanted));
  });
}

TEST(Linear, keeps_what_is_not_finite_in_its_row) {
  for_all([]<class E>(Isa isa, E) {
    const Layer of{13, 64, 64};
    Data<E> data(of);
    const auto before = linear<E>(isa, of, data);
    data.x[64 * 4 + 7] = element<E>(std::numeric_limits<double>::quiet_NaN());
    const auto after = linear<E>(isa, of, data);
    for (std::size_t at = 0; at < after.size(); ++at) {
      ASSERT_EQ(std::isnan(value(after[at])), at / 64 == 4) << at;
    }
    EXPECT_TRUE(same_bits(std::vector<E>(before.begin(), before.begin() + 256),
                          std::vector<E>(after.begin(), after.begin() + 256)));
  });
}

}  // namespace
}  // namespace halfwatt::cpu

#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<double>(shape.width));
}
Index elements(const AttentionShape& shape) {
  return shape.images * shape.tokens * shape.heads * shape.width;
}

template <class E>
struct Attended {
  std::vector<E> out;
  std::vector<Real<E>> lse;
};

template <class E>
Attended<E> attend(Isa isa,
                   const AttentionShape& shape,
                   const std::vector<E>& qkv,
                   int threads = 1) {
  Attended<E> result{std::vector<E>(static_cast<std::size_t>(elements(shape))),
                     std::vector<Real<E>>(
                         static_cast<std::size_t>(shape.images * shape.heads * shape.tokens))};
  Workers workers(threads);
  Workspace workspace(kernels<E>(isa).attention_forward_bytes(shape, threads));
  kernels<E>(isa).attention_forward(workers, {.shape = shape,
                                              .scale = static_cast<Real<E>>(scale_of(shape)),
                                              .qkv = qkv.data(),
                                              .out = result.out.data(),
                                              .lse = result.lse.data(),
                                              .workspace = workspace.data()});
  return result;
}

template <class E>
std::vector<E> gradient(Isa isa,
                        const AttentionShape& shape,
                        const std::vector<E>& qkv,
                        const std::vector<E>& dout,
                        int threads = 1) {
  const Attended<E> forward = attend(isa, shape, qkv);
  std::vector<E> dqkv(qkv.size());
  Workers workers(threads);
  Workspace workspace(kernels<E>(isa).attention_backward_bytes(shape, threads));
  kernels<E>(isa).attention_backward(workers, {.shape = shape,
                                               .scale = static_cast<Real<E>>(scale_of(shape)),
                                               .dout = dout.data(),
                                               .qkv = qkv.data(),
                                               .out = forward.out.data(),
                                               .lse = forward.lse.data(),
                                               .dqkv = dqkv.data(),
                                               .workspace = workspace.data()});
  return dqkv;
}

/// As it is defined, one query at a time.
template <class E>
Attended<double> reference(const AttentionShape& shape, const std::vector<E>& qkv) {
  const Index images = shape.images;
  const Index tokens = shape.tokens;
  const Index heads = shape.heads;
  const Index width = shape.width;
  Attended<double> result{std::vector<double>(static_cast<std::size_t>(elements(shape))), {}};
  const auto at = [&](Index image, Index token, Index part, Index head, Index j) {
    return value(qkv[static_cast<std::size_t>(
        (((image * tokens + token) * 3 + part) * heads + head) * width + j)]);
  };
  for (Index row = 0; row < images * heads * tokens; ++row) {
    const Index image = row / (heads * tokens);
    const Index head = row / tokens % heads;
    const Index token = row % tokens;
    double sum = 0;
    std::vector<double> mixed(static_cast<std::size_t>(width));
    for (Index key = 0; key < tokens; ++key) {
      double score = 0;
      for (Index j = 0; j < width; ++j) {
        score += scale_of(shape) * at(image, token, 0, head, j) * at(image, key, 1, head, j);
      }
      sum += std::exp(score);
      for (Index j = 0; j < width; ++j) {
        mixed[static_cast<std::size_t>(j)] += std::exp(score) * at(image, key, 2, head, j);
      }
    }
    result.lse.push_back(std::log(sum));
    for (Index j = 0; j < width; ++j) {
      result.out[static_cast<std::size_t>(((image * tokens + token) * heads + head) * width +
                                          j)] = mixed[static_cast<std::size_t>(j)] / sum;
    }
  }
  return result;
}

/// A score is a sum of `width` products of size 1 and shifts its weight by as much as itself is
/// off, relatively; a mix is a sum of `tokens` of them. Roundings add up like square roots, and
/// exp, the scale and the division are a few more.
template <class E>
double bound(const AttentionShape& shape) {
  return 4 * kUnit<E> *
         (std::sqrt(static_cast<double>(shape.width)) +
          std::sqrt(static_cast<double>(shape.tokens)) + 8);
}

TEST(Attention, agrees_with_its_definition_at_every_size) {
  for_all([]<class E>(Isa isa, E) {
    for (const AttentionShape& shape :
         {AttentionShape{2, 197, 2, 64}, AttentionShape{1, 17, 3, 16},
          AttentionShape{2, 1, 1, 5}, AttentionShape{1, 96, 1, 33},
          AttentionShape{1, 577, 1, 64}}) {
      SCOPED_TRACE(testing::Message() << shape.tokens << " tokens of " << shape.width);
      const auto qkv = numbers<E>(3 * elements(shape), 1);
      const auto got = attend(isa, shape, qkv, 2);
      const auto wanted = reference(shape, qkv);
      EXPECT_LE(error_of(got.out, wanted.out), bound<E>(shape) + kStoreUnit<E>);
      EXPECT_LE(error_of(got.lse, wanted.lse), bound<E>(shape));
    }
  });
}

TEST(Attention, survives_scores_that_exp_does_not) {
  for_all([]<class E>(Isa isa, E) {
    const AttentionShape shape{1, 20, 1, 16};
    auto qkv = numbers<E>(3 * elements(shape), 1, 30);  // scores of some 3000
    const auto got = attend(isa, shape, qkv);
    for (const E one : got.out) {
      ASSERT_TRUE(std::isfinite(value(one)));
    }
  });
}

TEST(Attention, of_an_image_does_not_depend_on_its_neighbours) {
  for_all([]<class E>(Isa isa, E) {
    const AttentionShape three{3, 37, 2, 20};
    const AttentionShape one{1, 37, 2, 20};
    const auto qkv = numbers<E>(3 * elements(three), 1);
    const Index size = elements(one);
    const auto batch = attend(isa, three, qkv, 2);
    for (Index image = 0; image < 3; ++image) {
      const std::vector<E> own(qkv.begin() + image * 3 * size,
                               qkv.begin() + (image + 1) * 3 * size);
      const auto alone = attend(isa, one, own);
      EXPECT_TRUE(
          std::equal(alone.out.begin(), alone.out.end(), batch.out.begin() + image * size));
    }
  });
}

TEST(Attention, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const AttentionShape shape{3, 101, 2, 16};
    const auto qkv = numbers<E>(3 * elements(shape), 1);
    const auto dout = numbers<E>(elements(shape), 2);
    EXPECT_TRUE(same_bits(attend(isa, shape, qkv, 1).out, attend(isa, shape, qkv, 4).out));
    const auto one = gradient(isa, shape, qkv, dout, 1);
    EXPECT_TRUE(same_bits(one, gradient(isa, shape, qkv, dout, 1)));
    EXPECT_TRUE(same_bits(one, gradient(isa, shape, qkv, dout, 4)));
  });
}

TEST(Attention, of_a_row_of_minus_infinities_is_zero) {
  for_all([]<class E>(Isa isa, E) {
    const AttentionShape shape{1, 5, 1, 4};
    auto qkv = numbers<E>(3 * elements(shape), 1);
    qkv[24] = element<E>(-kInfinity);  // the third query, against keys that are positive
    for (std::size_t token = 0; token < 5; ++token) {
      qkv[token * 12 + 4] = element<E>(1);
    }
    const auto got = attend(isa, shape, qkv);
    EXPECT_EQ(got.lse[2], -kInfinity);
    for (std::size_t i = 0; i < got.out.size(); ++i) {
      ASSERT_TRUE(std::isfinite(value(got.out[i])));
      ASSERT_EQ(value(got.out[i]) == 0, i / 4 == 2);
    }
    const auto dqkv = gradient(isa, shape, qkv, numbers<E>(elements(shape), 2));
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(value(dqkv[24 + j]), 0);
    }
  });
}

TEST(Attention, keeps_a_nan_in_its_image_and_head) {
  for_all([]<class E>(Isa isa, E) {
    const AttentionShape shape{2, 19, 2, 8};
    auto qkv = numbers<E>(3 * elements(shape), 1);
    qkv[3 * 16 + 8 + 16] = element<E>(std::nan(""));  // token 0's key, second head, no value
    qkv[16 + 8] = element<E>(std::nan(""));           // the same of token 0
    const auto got = attend(isa, shape, qkv);
    for (std::size_t i = 0; i < got.out.size(); ++i) {
      ASSERT_EQ(std::isnan(value(got.out[i])), i < std::size_t{19} * 16 && i % 16 >= 8) << i;
    }
  });
}

TEST(Attention, has_the_gradient_of_finite_differences) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    for (const AttentionShape& shape :
         {AttentionShape{2, 7, 2, 5}, AttentionShape{1, 99, 1, 2}}) {
      auto qkv = numbers<double>(3 * elements(shape), 1);
      const auto dout = numbers<double>(elements(shape), 2);
      const auto loss = [&] {
        const auto out = attend(isa, shape, qkv).out;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
          sum += out[i] * dout[i];
        }
        return sum;
      };
      EXPECT_LE(error_of(gradient(isa, shape, qkv, dout), slopes(qkv, loss)), kSlopeError);
    }
  }
}

TEST(Attention, has_a_gradient_that_agrees_with_that_in_double) {
  for_all([]<class E>(Isa isa, E) {
    for (const AttentionShape& shape :
         {AttentionShape{1, 197, 2, 64}, AttentionShape{1, 17, 1, 16}}) {
      const auto qkv = numbers<E>(3 * elements(shape), 1);
      const auto dout = numbers<E>(elements(shape), 2);
      const auto wanted =
          gradient(Isa::portable, shape, converted<double>(qkv), converted<double>(dout));
      // The output enters through out . dout, rounded as it is stored: a sum of `width` of
      // them.
      const double stored = 4 * kStoreUnit<E>;
      EXPECT_LE(error_of(gradient(isa, shape, qkv, dout), wanted),
                2 * bound<E>(shape) + stored);
    }
  });
}

}  // namespace
}  // namespace halfwatt::cpu

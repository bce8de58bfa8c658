#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class E>
struct Lost {
  std::vector<Real<E>> loss;
  Real<E> mean = 0;
  std::vector<E> gradient;
};

struct Labelled {
  Index classes;
  std::vector<std::int64_t> labels;
  double smoothing = 0;
  Index valid = -1;  // all
  int threads = 1;
};

template <class E>
Lost<E> cross_entropy(Isa isa, const std::vector<E>& logits, const Labelled& of) {
  const auto rows = static_cast<Index>(of.labels.size());
  Lost<E> result{std::vector<Real<E>>(of.labels.size()), 0, std::vector<E>(logits.size())};
  Workers workers(of.threads);
  kernels<E>(isa).cross_entropy(workers, {.rows = rows,
                                          .classes = of.classes,
                                          .valid = of.valid < 0 ? rows : of.valid,
                                          .logits = logits.data(),
                                          .labels = of.labels.data(),
                                          .smoothing = static_cast<Real<E>>(of.smoothing),
                                          .loss = result.loss.data(),
                                          .mean = &result.mean,
                                          .gradient = result.gradient.data()});
  return result;
}

template <class E>
Lost<E> binary(Isa isa,
               const std::vector<E>& logits,
               const std::vector<double>& targets,
               Index classes = 1,
               Index valid = -1) {
  const auto rows = static_cast<Index>(logits.size()) / classes;
  const auto converted_targets = converted<Real<E>>(targets);
  Lost<E> result{std::vector<Real<E>>(static_cast<std::size_t>(rows)), 0,
                 std::vector<E>(logits.size())};
  Workers workers(1);
  kernels<E>(isa).binary_cross_entropy(workers, {.rows = rows,
                                                 .classes = classes,
                                                 .valid = valid < 0 ? rows : valid,
                                                 .logits = logits.data(),
                                                 .targets = converted_targets.data(),
                                                 .loss = result.loss.data(),
                                                 .mean = &result.mean,
                                                 .gradient = result.gradient.data()});
  return result;
}

template <class E>
std::vector<E> elements(std::initializer_list<double> values) {
  std::vector<E> all;
  for (const double one : values) {
    all.push_back(element<E>(one));
  }
  return all;
}

TEST(CrossEntropy, agrees_with_the_vectors_of_the_facts) {
  for_all([]<class E>(Isa isa, E) {
    // bf16 rounds the logit .1 to .10009766, which moves the loss by 1e-5.
    const double input = std::is_same_v<E, Bf16> ? 1e-4 : 4 * kUnit<E> + 1e-8;
    const double output = input + kStoreUnit<E>;
    const auto logits = elements<E>({2, 1, 0.1});
    const auto plain = cross_entropy(isa, logits, {.classes = 3, .labels = {0}});
    EXPECT_NEAR(value(plain.loss[0]), 0.41703002, input);
    EXPECT_NEAR(value(plain.gradient[0]), -0.34099886, output);
    EXPECT_NEAR(value(plain.gradient[1]), 0.24243297, output);
    EXPECT_NEAR(value(plain.gradient[2]), 0.09856589, output);
    const auto smooth =
        cross_entropy(isa, logits, {.classes = 3, .labels = {0}, .smoothing = 0.1});
    EXPECT_NEAR(value(smooth.loss[0]), 0.51369668, input + 4e-8);
    EXPECT_NEAR(value(smooth.gradient[0]), -0.27433219, output);
    EXPECT_NEAR(value(smooth.gradient[1]), 0.20909964, output);
    EXPECT_NEAR(value(smooth.gradient[2]), 0.06523256, output);
    const std::vector<E> uniform(1000);
    EXPECT_NEAR(value(cross_entropy(isa, uniform, {.classes = 1000, .labels = {7}}).mean),
                6.90775528, 7 * kUnit<E> * 2 + 1e-8);
  });
}

TEST(CrossEntropy, is_exact_where_exp_overflows) {
  for_all([]<class E>(Isa isa, E) {
    const auto logits = elements<E>({1000, 0});
    EXPECT_EQ(value(cross_entropy(isa, logits, {.classes = 2, .labels = {1}}).loss[0]), 1000);
    EXPECT_NEAR(
        value(cross_entropy(isa, logits, {.classes = 2, .labels = {1}, .smoothing = 0.1})
                  .loss[0]),
        950, 950 * 2 * kUnit<E>);
    EXPECT_EQ(value(cross_entropy(isa, logits, {.classes = 2, .labels = {0}}).loss[0]), 0);
  });
}

TEST(CrossEntropy, has_the_probabilities_of_the_softmax_vectors_as_gradient) {
  for_all([]<class E>(Isa isa, E) {
    const auto masked =
        cross_entropy(isa, elements<E>({0, -kInfinity, 0}), {.classes = 3, .labels = {0}});
    EXPECT_EQ(masked.gradient, elements<E>({-0.5, 0, 0.5}));
    const auto large =
        cross_entropy(isa, elements<E>({65504, 65504}), {.classes = 2, .labels = {0}});
    EXPECT_EQ(large.gradient, elements<E>({-0.5, 0.5}));
    const auto steps =
        cross_entropy(isa, elements<E>({1, 2, 3}), {.classes = 3, .labels = {0}});
    const double bound = 4 * kUnit<E> + kStoreUnit<E> + 1e-8;
    EXPECT_NEAR(value(steps.gradient[0]), 0.09003057 - 1, bound);
    EXPECT_NEAR(value(steps.gradient[1]), 0.24472847, bound);
    EXPECT_NEAR(value(steps.gradient[2]), 0.66524096, bound);
  });
}

TEST(CrossEntropy, leaves_padding_out) {
  for_all([]<class E>(Isa isa, E) {
    auto logits = numbers<E>(5 * 11, 1);
    std::fill(logits.begin() + 33, logits.end(), element<E>(std::nan("")));
    const std::vector<E> first(logits.begin(), logits.begin() + 33);
    const auto padded =
        cross_entropy(isa, logits, {.classes = 11, .labels = {1, 2, 3, -1, 99}, .valid = 3});
    const auto alone = cross_entropy(isa, first, {.classes = 11, .labels = {1, 2, 3}});
    EXPECT_EQ(padded.mean, alone.mean);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), logits.begin()));
    EXPECT_TRUE(
        std::equal(alone.gradient.begin(), alone.gradient.end(), padded.gradient.begin()));
    EXPECT_EQ(value(padded.loss[4]), 0);
    EXPECT_EQ(value(padded.gradient[54]), 0);
    const auto none =
        cross_entropy(isa, first, {.classes = 11, .labels = {1, 2, 3}, .valid = 0});
    EXPECT_EQ(value(none.mean), 0);
  });
}

TEST(CrossEntropy, has_the_gradient_of_finite_differences) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    auto logits = numbers<double>(69, 1);
    const Labelled labels{.classes = 23, .labels = {0, 22, 9}, .smoothing = 0.1};
    const auto loss = [&] { return cross_entropy(isa, logits, labels).mean; };
    EXPECT_LE(error_of(cross_entropy(isa, logits, labels).gradient, slopes(logits, loss)),
              kSlopeError);
  }
}

TEST(CrossEntropy, shows_what_is_not_finite) {
  for_all([]<class E>(Isa isa, E) {
    for (const double bad : {std::nan(""), kInfinity}) {
      const auto lost =
          cross_entropy(isa, elements<E>({1, bad, 2}), {.classes = 3, .labels = {0}});
      EXPECT_FALSE(std::isfinite(value(lost.mean)));
      EXPECT_TRUE(std::isnan(value(lost.gradient[1])));
    }
  });
}

TEST(CrossEntropy, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const auto logits = numbers<E>(100 * 1000, 1);
    Labelled of{.classes = 1000, .labels = std::vector<std::int64_t>(100, 3), .smoothing = 0.1};
    const auto one = cross_entropy(isa, logits, of);
    of.threads = 3;
    const auto three = cross_entropy(isa, logits, of);
    EXPECT_EQ(one.mean, three.mean);
    EXPECT_TRUE(same_bits(one.gradient, three.gradient));
  });
}

TEST(BinaryCrossEntropy, agrees_with_the_vectors_of_the_facts) {
  for_all([]<class E>(Isa isa, E) {
    const auto loss = [&](double logit, double target) {
      return value(binary(isa, elements<E>({logit}), {target}).mean);
    };
    EXPECT_NEAR(loss(0, 0), 0.69314718, 2 * kUnit<E> + 1e-8);
    EXPECT_EQ(loss(100, 0), 100);
    EXPECT_GE(loss(100, 1), 0);
    EXPECT_LE(loss(100, 1), 3.8e-44);
    EXPECT_EQ(loss(-100, 1), 100);
    EXPECT_EQ(loss(1000, 1), 0);
    EXPECT_NEAR(loss(2, 0.9), 0.32692801, 8 * kUnit<E> + 1e-8);
    EXPECT_NEAR(value(binary(isa, elements<E>({2}), {0.9}).gradient[0]), -0.01920292,
                4 * kUnit<E> + 0.02 * kStoreUnit<E> + 1e-8);
    EXPECT_TRUE(std::isnan(loss(std::nan(""), 0)));
  });
}

TEST(BinaryCrossEntropy, has_the_gradient_of_finite_differences_and_leaves_padding_out) {
  for (const Isa isa : kIsas) {
    if (!machine_has(isa)) {
      continue;
    }
    auto logits = numbers<double>(12, 1, 3);
    const std::vector<double> targets = {0, 1, .5, 1, 0, 0, .9, .1, 1, 0, 1, 0};
    const auto loss = [&] { return binary(isa, logits, targets, 3, 3).mean; };
    EXPECT_LE(error_of(binary(isa, logits, targets, 3, 3).gradient, slopes(logits, loss)),
              kSlopeError);
  }
}

}  // namespace
}  // namespace halfwatt::cpu

#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

template <class T>
struct State {
  std::vector<T> parameters, first, second;
};

template <class T>
void step(Isa isa, State<T>& state, const std::vector<T>& gradients, AdamW<T> with) {
  with.count = static_cast<Index>(gradients.size());
  with.parameters = state.parameters.data();
  with.first_moments = state.first.data();
  with.second_moments = state.second.data();
  with.gradients = gradients.data();
  kernels<T>(isa).adamw(with);
}

template <class T>
AdamW<T> settings(std::int64_t at_step) {
  AdamW<T> with{};
  with.lr = 1e-3;
  with.beta1 = 0.9;
  with.beta2 = 0.999;
  with.epsilon = 1e-8;
  with.weight_decay = 0.01;
  with.step = at_step;
  with.unscale = 1;
  return with;
}

template <class Check>
void for_both(Check check) {
  for_all([&]<class E>(Isa isa, E) {
    if constexpr (!std::is_same_v<E, Bf16>) {
      check(isa, E{});
    }
  });
}

TEST(AdamW, agrees_with_the_vectors_of_the_facts) {
  for_both([]<class T>(Isa isa, T) {
    const double bound = 2 * kUnit<T> + 1e-10;
    State<T> state{{1}, {0}, {0}};
    step<T>(isa, state, {T(0.1)}, settings<T>(1));
    EXPECT_NEAR(value(state.parameters[0]), 0.9989900001, bound);
    EXPECT_NEAR(value(state.first[0]), 0.01, bound);
    EXPECT_NEAR(value(state.second[0]), 1e-5, 1e-5 * 8 * kUnit<T> + 1e-18);
    step<T>(isa, state, {T(-0.2)}, settings<T>(2));
    EXPECT_NEAR(value(state.parameters[0]), 0.9993461137, bound);
    EXPECT_NEAR(value(state.first[0]), -0.011, bound);
    EXPECT_NEAR(value(state.second[0]), 4.999e-5, 5e-5 * 8 * kUnit<T> + 1e-18);
    State<T> small{{1}, {0}, {0}};
    step<T>(isa, small, {T(1e-9)}, settings<T>(1));
    EXPECT_NEAR(value(small.parameters[0]), 0.9998990909, bound);
    State<T> none{{1}, {0}, {0}};
    step<T>(isa, none, {T(0)}, settings<T>(1));
    EXPECT_NEAR(value(none.parameters[0]), 0.99999, bound);
  });
}

TEST(AdamW, is_the_same_for_an_element_wherever_it_lies) {
  for_both([]<class T>(Isa isa, T) {
    constexpr Index kCount = 4003;
    const auto gradients = numbers<T>(kCount, 1);
    State<T> many{numbers<T>(kCount, 2), numbers<T>(kCount, 3, 0.1), {}};
    many.second.assign(kCount, T(0.01));
    const State<T> before = many;
    step(isa, many, gradients, settings<T>(7));
    for (std::size_t i = 0; i < gradients.size(); i += 97) {
      State<T> alone{{before.parameters[i]}, {before.first[i]}, {before.second[i]}};
      step<T>(isa, alone, {gradients[i]}, settings<T>(7));
      EXPECT_EQ(alone.parameters[0], many.parameters[i]);
      EXPECT_EQ(alone.first[0], many.first[i]);
      EXPECT_EQ(alone.second[0], many.second[i]);
    }
  });
}

TEST(AdamW, takes_the_loss_scale_off_the_gradients) {
  for_both([]<class T>(Isa isa, T) {
    State<T> plain{{1, 2}, {0, 0}, {0, 0}};
    State<T> scaled = plain;
    step<T>(isa, plain, {T(0.25), T(-3)}, settings<T>(1));
    AdamW<T> with = settings<T>(1);
    with.unscale = T(0x1p-16);  // a power of two: exact
    step<T>(isa, scaled, {T(0.25) * 65536, T(-3) * 65536}, with);
    EXPECT_TRUE(same_bits(plain.parameters, scaled.parameters));
  });
}

TEST(Sgd, does_as_pytorch_does) {
  for_both([]<class T>(Isa isa, T) {
    // torch.optim.SGD: d = g + wd p; the first step sets the momentum to d, later ones to
    // mu m + d; p -= lr m.
    std::vector<T> parameters = {T(1), T(-2), T(0.5)};
    std::vector<T> momenta(3, std::numeric_limits<T>::quiet_NaN());  // not read at step 1
    std::vector<double> p = {1, -2, 0.5};
    std::vector<double> m(3);
    for (std::int64_t at = 1; at <= 3; ++at) {
      const std::vector<T> gradients = {T(0.5), T(0.25), T(static_cast<double>(at))};
      kernels<T>(isa).sgd({.count = 3,
                           .parameters = parameters.data(),
                           .momenta = momenta.data(),
                           .gradients = gradients.data(),
                           .lr = 0.1,
                           .momentum = 0.9,
                           .weight_decay = 0.01,
                           .step = at});
      for (std::size_t i = 0; i < 3; ++i) {
        const double d = value(gradients[i]) + 0.01 * p[i];
        m[i] = at == 1 ? d : 0.9 * m[i] + d;
        p[i] -= 0.1 * m[i];
        // A few roundings of numbers up to 3 in each step.
        EXPECT_NEAR(value(parameters[i]), p[i], static_cast<double>(at) * 8 * kUnit<T>);
      }
    }
  });
}

TEST(Sgd, takes_the_loss_scale_off_the_gradients) {
  for_both([]<class T>(Isa isa, T) {
    std::vector<T> parameters(37, T(1));
    std::vector<T> momenta(37);
    const std::vector<T> gradients(37, T(64));
    kernels<T>(isa).sgd({.count = 37,
                         .parameters = parameters.data(),
                         .momenta = momenta.data(),
                         .gradients = gradients.data(),
                         .lr = 0.5,
                         .momentum = 0,
                         .weight_decay = 0,
                         .step = 1,
                         .unscale = T(0x1p-6)});
    EXPECT_EQ(parameters, std::vector<T>(37, T(0.5)));
  });
}

TEST(Tally, counts_what_is_not_finite_and_what_did_not_change) {
  for_both([]<class T>(Isa isa, T) {
    const T infinity = std::numeric_limits<T>::infinity();
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (const std::size_t count : {5, 64, 1003}) {
      std::vector<T> before = numbers<T>(static_cast<Index>(count), 1);
      std::vector<T> after = numbers<T>(static_cast<Index>(count), 2);
      after[1] = before[1];
      before[2] = after[2] = infinity;  // unchanged, and not finite
      before[3] = after[3] = nan;       // no number is what it was
      after[count - 1] = -infinity;
      before[0] = T(0);
      after[0] = -T(0);
      const Tally tally =
          kernels<T>(isa).tally(static_cast<Index>(count), before.data(), after.data());
      EXPECT_EQ(tally.not_finite, 3);
      EXPECT_EQ(tally.unchanged, 3);
    }
  });
}

TEST(SquareSum, is_exact_where_it_can_be_and_does_not_overflow) {
  for_all([]<class E>(Isa isa, E) {
    Workers workers(2);
    const std::vector<E> hundreds(300, element<E>(100));
    const SquareSum sum = kernels<E>(isa).square_sum(workers, 300, hundreds.data());
    EXPECT_EQ(sum.value, 3e6);
    EXPECT_NEAR(std::sqrt(sum.value), 1732.0508, 1e-4);
    const std::vector<E> large(100, element<E>(0x1p100));  // squared, beyond all floats
    EXPECT_EQ(kernels<E>(isa).square_sum(workers, 100, large.data()).value, 100 * 0x1p200);
    EXPECT_EQ(kernels<E>(isa).square_sum(workers, 0, large.data()).value, 0);
  });
}

TEST(SquareSum, finds_one_bad_element_wherever_it_is) {
  for_all([]<class E>(Isa isa, E) {
    Workers workers(2);
    auto x = numbers<E>(1003, 1);
    EXPECT_TRUE(kernels<E>(isa).square_sum(workers, 1003, x.data()).finite);
    for (const std::size_t at : {0, 16, 500, 1002}) {
      for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
        const E good = x[at];
        x[at] = element<E>(bad);
        EXPECT_FALSE(kernels<E>(isa).square_sum(workers, 1003, x.data()).finite);
        x[at] = good;
      }
    }
  });
}

TEST(SquareSum, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    const auto x = numbers<E>(70001, 1);
    Workers one(1);
    Workers three(3);
    EXPECT_EQ(kernels<E>(isa).square_sum(one, 70001, x.data()).value,
              kernels<E>(isa).square_sum(three, 70001, x.data()).value);
  });
}

}  // namespace
}  // namespace halfwatt::cpu

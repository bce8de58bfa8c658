#include <limits>

#include "kernel_test.h"

namespace halfwatt::cpu {
namespace {

ConvolutionShape shape_of(Index images,
                          Index channels,
                          std::array<Index, 2> sides,
                          Index outputs,
                          std::array<Index, 2> kernel,
                          std::array<Index, 2> stride_and_padding) {
  const auto [stride, padding] = stride_and_padding;
  return {images,
          channels,
          sides[0],
          sides[1],
          outputs,
          kernel[0],
          kernel[1],
          stride,
          padding,
          (sides[0] + 2 * padding - kernel[0]) / stride + 1,
          (sides[1] + 2 * padding - kernel[1]) / stride + 1};
}

// Blocks of several rows, columns and depths; a kernel larger than a block of patches.
const std::vector<ConvolutionShape> kShapes = {shape_of(1, 1, {1, 1}, 1, {1, 1}, {1, 0}),
                                               shape_of(2, 3, {9, 7}, 5, {3, 3}, {1, 1}),
                                               shape_of(2, 3, {8, 12}, 13, {4, 4}, {4, 0}),
                                               shape_of(3, 7, {11, 10}, 30, {5, 2}, {3, 1}),
                                               shape_of(1, 30, {23, 25}, 40, {3, 3}, {1, 1}),
                                               shape_of(1, 2, {20, 20}, 3, {16, 16}, {2, 5}),
                                               shape_of(2, 30, {6, 6}, 270, {1, 1}, {2, 0})};

Index images_size(const ConvolutionShape& s) {
  return s.images * s.channels * s.height * s.width;
}
Index weights_size(const ConvolutionShape& s) {
  return s.outputs * s.channels * s.kernel_height * s.kernel_width;
}
Index outputs_size(const ConvolutionShape& s) {
  return s.images * s.outputs * s.out_height * s.out_width;
}

/// Calls `term(output, image, weight)` with the places of every three numbers that meet.
template <class Term>
void for_terms(const ConvolutionShape& s, Term term) {
  for (Index y = 0; y < outputs_size(s); ++y) {
    const Index column = y % s.out_width;
    const Index row = y / s.out_width % s.out_height;
    const Index output = y / s.out_width / s.out_height % s.outputs;
    const Index image = y / s.out_width / s.out_height / s.outputs;
    for (Index tap = 0; tap < weights_size(s) / s.outputs; ++tap) {
      const Index channel = tap / s.kernel_height / s.kernel_width;
      const Index v = row * s.stride - s.padding + tap / s.kernel_width % s.kernel_height;
      const Index u = column * s.stride - s.padding + tap % s.kernel_width;
      if (v >= 0 && v < s.height && u >= 0 && u < s.width) {
        term(y, ((image * s.channels + channel) * s.height + v) * s.width + u,
             output * (weights_size(s) / s.outputs) + tap);
      }
    }
  }
}

/// What `compute` has made against sums in double of products of `one` and `other`, which
/// `places` gives for each term: each is within (terms + 2) u of the sum of their magnitudes,
/// whatever the order (Higham, gamma_k).
struct Sum {
  double value = 0;
  double magnitude = 1;
  Index terms = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
    ++terms;
  }
};

template <class E>
void expect_sums(const std::vector<Real<E>>& got, const std::vector<Sum>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t at = 0; at < got.size(); ++at) {
    const double bound = 2 * static_cast<double>(wanted[at].terms + 3) * kUnit<E>;
    ASSERT_LE(std::abs(value(got[at]) - wanted[at].value), bound * wanted[at].magnitude) << at;
  }
}

std::size_t place(Index at) { return static_cast<std::size_t>(at); }

template <class E>
struct Given {
  explicit Given(const ConvolutionShape& s)
      : shape(s),
        images(numbers<E>(images_size(s), 1)),
        weights(numbers<E>(weights_size(s), 2)),
        bias(numbers<Real<E>>(s.outputs, 3)),
        dy(numbers<E>(outputs_size(s), 4)) {}

  // What is not written stays NaN.
  static std::vector<Real<E>> room(Index count) {
    return std::vector<Real<E>>(place(count), std::numeric_limits<Real<E>>::quiet_NaN());
  }

  std::vector<Real<E>> outputs(Isa isa, int threads, bool biased = true) const {
    auto y = room(outputs_size(shape));
    Workers workers(threads);
    Workspace workspace(kernels<E>(isa).convolution_bytes(threads));
    kernels<E>(isa).convolution(
        workers, {shape, images.data(), weights.data(), biased ? bias.data() : nullptr,
                  y.data(), workspace.data()});
    return y;
  }
  std::vector<Real<E>> dimages(Isa isa, int threads) const {
    auto dx = room(images_size(shape));
    Workers workers(threads);
    Workspace workspace(kernels<E>(isa).convolution_bytes(threads));
    kernels<E>(isa).convolution_input_gradient(
        workers, {shape, dy.data(), weights.data(), dx.data(), workspace.data()});
    return dx;
  }
  std::vector<Real<E>> dweights(Isa isa, int threads) const {
    auto dw = room(weights_size(shape));
    Workers workers(threads);
    Workspace workspace(kernels<E>(isa).convolution_bytes(threads));
    kernels<E>(isa).convolution_weight_gradient(
        workers, {shape, dy.data(), images.data(), dw.data(), workspace.data()});
    return dw;
  }
  std::vector<Real<E>> dbias(Isa isa, int threads) const {
    auto db = room(shape.outputs);
    Workers workers(threads);
    kernels<E>(isa).convolution_bias_gradient(
        workers, {shape.images, shape.outputs, shape.out_height * shape.out_width, dy.data(),
                  db.data()});
    return db;
  }

  ConvolutionShape shape;
  std::vector<E> images;
  std::vector<E> weights;
  std::vector<Real<E>> bias;
  std::vector<E> dy;
};

TEST(Convolution, and_its_gradients_are_the_sums_of_every_product_that_belongs_to_them) {
  for_all([]<class E>(Isa isa, E) {
    for (const ConvolutionShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape.height << "x" << shape.width << " by "
                                      << shape.kernel_height << "x" << shape.kernel_width);
      const Given<E> given(shape);
      std::vector<Sum> outputs(given.dy.size());
      std::vector<Sum> images(given.images.size());
      std::vector<Sum> weights(given.weights.size());
      std::vector<Sum> bias(given.bias.size());
      const Index positions = shape.out_height * shape.out_width;
      for (Index y = 0; y < outputs_size(shape); ++y) {
        const std::size_t output = place(y / positions % shape.outputs);
        outputs[place(y)].add(value(given.bias[output]));
        bias[output].add(value(given.dy[place(y)]));
      }
      for_terms(shape, [&](Index y, Index x, Index w) {
        const double dy = value(given.dy[place(y)]);
        const double image = value(given.images[place(x)]);
        const double weight = value(given.weights[place(w)]);
        outputs[place(y)].add(image * weight);
        images[place(x)].add(dy * weight);
        weights[place(w)].add(dy * image);
      });
      expect_sums<E>(given.outputs(isa, 2), outputs);
      expect_sums<E>(given.dimages(isa, 2), images);
      expect_sums<E>(given.dweights(isa, 2), weights);
      expect_sums<E>(given.dbias(isa, 2), bias);
    }
  });
}

TEST(Convolution, is_the_same_bits_for_every_number_of_threads) {
  for_all([]<class E>(Isa isa, E) {
    for (const ConvolutionShape& shape : kShapes) {
      const Given<E> given(shape);
      for (const int threads : {2, 5}) {
        EXPECT_TRUE(same_bits(given.outputs(isa, 1), given.outputs(isa, threads)));
        EXPECT_TRUE(same_bits(given.dimages(isa, 1), given.dimages(isa, threads)));
        EXPECT_TRUE(same_bits(given.dweights(isa, 1), given.dweights(isa, threads)));
        EXPECT_TRUE(same_bits(given.dbias(isa, 1), given.dbias(isa, threads)));
      }
    }
  });
}

TEST(Convolution, adds_nothing_where_there_is_no_bias) {
  for_all([]<class E>(Isa isa, E) {
    Given<E> given(kShapes[1]);
    const auto plain = given.outputs(isa, 2, false);
    std::fill(given.bias.begin(), given.bias.end(), Real<E>(0));
    EXPECT_TRUE(same_bits(plain, given.outputs(isa, 2)));
  });
}

TEST(Convolution, of_no_images_has_weights_with_a_gradient_of_zero) {
  for_all([]<class E>(Isa isa, E) {
    const Given<E> given(shape_of(0, 3, {9, 7}, 5, {3, 3}, {1, 1}));
    EXPECT_TRUE(given.outputs(isa, 2).empty());
    EXPECT_EQ(given.dweights(isa, 2), std::vector<Real<E>>(5 * 3 * 3 * 3, 0));
    EXPECT_EQ(given.dbias(isa, 2), std::vector<Real<E>>(5, 0));
  });
}

}  // namespace
}  // namespace halfwatt::cpu

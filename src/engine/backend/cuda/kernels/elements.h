#pragma once

#include "engine/backend/cuda/kernels/memory.h"

// Kernels that compute every element by itself. Numbers are computed in fp32 and rounded once.

namespace halfwatt::cuda {

/// Every element in the dtype of `to`: any floats; of other dtypes equal ones.
void convert(Stream stream, Elements from, Elements to, Index count);

constexpr int kMostChannels = 4;
/// What the bytes of each channel are normalised by.
struct ChannelNorms {
  int channels = 0;
  float mean[kMostChannels] = {};
  float deviation[kMostChannels] = {};
};

/// y, f32 = normalised(x), x being bytes: `planes` of `plane` elements, the channels of a
/// picture one after the other. The bits are those of tensor/normalisation.h.
void normalise(
    Stream stream, Elements x, Elements y, Index planes, Index plane, const ChannelNorms& by);

/// y = a + b, b of `width` elements being repeated.
void add(Stream stream, Elements a, Elements b, Elements y, Index count, Index width);

/// y = x * factor; `by`, if it is there, is a scalar on the device that takes its place.
void scale(Stream stream, Elements x, float factor, Elements by, Elements y, Index count);

/// y = gelu(x), with erf.
void gelu(Stream stream, Elements x, Elements y, Index count);
/// dx = dy * gelu'(x).
void gelu_gradient(Stream stream, Elements dy, Elements x, Elements dx, Index count);

/// What random numbers follow from: three i64 on the device (seed, attempt, first sample), and
/// the hash of the path of the op.
struct RandomSource {
  const std::int64_t* key;
  std::uint64_t path;
};

/// Samples of `width` elements each: those that are dropped are 0, all others times 1 / (1 -
/// rate).
void dropout(Stream stream,
             Elements x,
             Elements y,
             Index count,
             Index width,
             double rate,
             RandomSource random);
/// The same with whole samples.
void drop_path(Stream stream,
               Elements x,
               Elements y,
               Index count,
               Index width,
               double rate,
               RandomSource random);

/// Every element `value`; of integers that whole number.
void fill(Stream stream, Elements y, double value, Index count);

/// Normal numbers that follow from `seed`: what a kernel is timed on.
void fill_with_normals(Stream stream, Elements y, std::uint64_t seed, Index count);

}  // namespace halfwatt::cuda

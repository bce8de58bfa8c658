#pragma once

#include "engine/backend/cuda/kernels/memory.h"

// What turns convolutions into products: gathering the inputs of every output into a row.

namespace halfwatt::cuda {

struct ConvolutionShape {
  Index images, channels, height, width;
  Index outputs, kernel_height, kernel_width;
  Index stride, padding;
  Index out_height, out_width;

  Index positions() const { return out_height * out_width; }
  Index patch() const { return channels * kernel_height * kernel_width; }
};

/// patches [images, positions, patch] of images [images, channels, height, width]; zeros beyond
/// the edges.
void gather_patches(Stream stream,
                    const ConvolutionShape& shape,
                    Elements images,
                    Elements patches);
/// The other way: every pixel is the sum of where it went to.
void scatter_patches(Stream stream,
                     const ConvolutionShape& shape,
                     Elements patches,
                     Elements images);

}  // namespace halfwatt::cuda

#include "engine/backend/cuda/kernels/patches.h"
#include "engine/backend/cuda/kernels/types.cuh"

namespace halfwatt::cuda {
namespace {

template <DType E>
__global__ void gather_kernel(ConvolutionShape shape, const std::byte* images, std::byte* to) {
  const Index patch = shape.channels * shape.kernel_height * shape.kernel_width;
  const Index positions = shape.out_height * shape.out_width;
  each(shape.images * positions * patch, [&](Index i) {
    const Index column = i % shape.kernel_width;
    const Index row = i / shape.kernel_width % shape.kernel_height;
    const Index channel = i / (shape.kernel_width * shape.kernel_height) % shape.channels;
    const Index position = i / patch % positions;
    const Index image = i / (patch * positions);
    const Index y = position / shape.out_width * shape.stride + row - shape.padding;
    const Index x = position % shape.out_width * shape.stride + column - shape.padding;
    const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
    const Index from =
        ((image * shape.channels + channel) * shape.height + y) * shape.width + x;
    reinterpret_cast<Stored<E>*>(to)[i] =
        inside ? reinterpret_cast<const Stored<E>*>(images)[from] : Stored<E>{};
  });
}

__global__ void scatter_kernel(ConvolutionShape shape, Elements patches, Elements images) {
  const Index patch = shape.channels * shape.kernel_height * shape.kernel_width;
  each(shape.images * shape.channels * shape.height * shape.width, [&](Index i) {
    const Index x = i % shape.width + shape.padding;
    const Index y = i / shape.width % shape.height + shape.padding;
    const Index channel = i / (shape.width * shape.height) % shape.channels;
    const Index image = i / (shape.width * shape.height * shape.channels);
    float sum = 0;
    for (Index row = y % shape.stride; row < shape.kernel_height && row <= y;
         row += shape.stride) {
      const Index out_row = (y - row) / shape.stride;
      for (Index column = x % shape.stride; column < shape.kernel_width && column <= x;
           column += shape.stride) {
        const Index out_column = (x - column) / shape.stride;
        if (out_row < shape.out_height && out_column < shape.out_width) {
          const Index position =
              (image * shape.out_height + out_row) * shape.out_width + out_column;
          const Index place =
              (channel * shape.kernel_height + row) * shape.kernel_width + column;
          sum += load(patches, position * patch + place);
        }
      }
    }
    store(images, i, sum);
  });
}

}  // namespace

void gather_patches(Stream stream,
                    const ConvolutionShape& shape,
                    Elements images,
                    Elements patches) {
  const Index count = shape.images * shape.positions() * shape.patch();
  if (count == 0) {
    return;
  }
  with_storage(images.dtype, [&](auto tag) {
    gather_kernel<decltype(tag)::kDType>
        <<<blocks_for(count), kThreads, 0, stream>>>(shape, images.data, patches.data);
  });
  check_launch("gather_patches");
}

void scatter_patches(Stream stream,
                     const ConvolutionShape& shape,
                     Elements patches,
                     Elements images) {
  const Index count = shape.images * shape.channels * shape.height * shape.width;
  if (count > 0) {
    scatter_kernel<<<blocks_for(count), kThreads, 0, stream>>>(shape, patches, images);
  }
  check_launch("scatter_patches");
}

}  // namespace halfwatt::cuda

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/data/image.h"
#include "engine/data/resize.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/normalisation.h"

namespace halfwatt {

/// To [-1, 1]: timm's IMAGENET_INCEPTION.
inline constexpr Normalisation kInceptionNormalisation = {{0.5F, 0.5F, 0.5F},
                                                          {0.5F, 0.5F, 0.5F}};
/// timm's IMAGENET_DEFAULT: mean and deviation of ImageNet.
inline constexpr Normalisation kImagenetNormalisation = {{0.485F, 0.456F, 0.406F},
                                                         {0.229F, 0.224F, 0.225F}};

/// How a model wants to see a picture when it is evaluated: the shorter side resized to
/// floor(size / crop), then a square of `size` cut out of the middle.
struct Preprocessing {
  std::int64_t size = 224;  ///< side in pixels
  double crop = 0.875;      ///< timm's crop_pct
  Filter filter = Filter::bicubic;
  Normalisation normalisation = kImagenetNormalisation;
  PassOrder order = PassOrder::rows;
  bool operator==(const Preprocessing&) const = default;
};

/// What timm does for the weights it loads for `model`, at images of side `size`; for a model
/// that timm has none for, the same but all of the picture, and for no ViT timm's defaults.
Preprocessing preprocessing_of(std::string_view model, std::int64_t size);

/// The pixels that timm's evaluation transform makes of `image` before it normalises, each of
/// them: torchvision's Resize and CenterCrop of a Pillow image, black where there is no
/// picture. Errors: none; an empty image is a broken invariant.
Image evaluation_view(const Image& image, const Preprocessing& how);

/// What evaluation_view() shows of a picture of this size.
ResizedPart evaluation_part(std::int64_t width, std::int64_t height, const Preprocessing& how);

/// That part, made already, as the view: in the middle of a black square of side `size` where
/// it does not fill it.
Image framed(Image part, std::int64_t size);

/// Writes `image`, mirrored if `flip`, as [3, height, width] normalised: f32, or that rounded
/// to f16 or bf16; or as u8 its bytes as they are, for a device to normalise. `to` holds just
/// that, aligned to its elements; another dtype or size is a broken invariant.
void to_tensor(const Image& image,
               const Normalisation& normalisation,
               bool flip,
               std::span<std::byte> to,
               DType dtype);

}  // namespace halfwatt

#include "cli/infer_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/rng.h"
#include "cli/command.h"
#include "engine/data/picture_file.h"
#include "engine/data/preprocess.h"
#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/models/images.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

// `count` images of standard normal numbers; the first ones are the same whatever the count.
Result<Tensor> synthetic(const VitConfig& model,
                         std::string_view count,
                         std::uint64_t seed,
                         const Target& target) {
  Invocation words;
  words.add("--input synthetic:", std::string(count));
  const auto images = words.whole("--input synthetic:", 0, 1, 1e9);
  if (!images) {
    return images.error();
  }
  const TensorType type{DType::f32, Shape{static_cast<std::int64_t>(*images), model.channels,
                                          model.image, model.image}};
  if (static_cast<double>(type.bytes()) > target.memory.value_or(Bytes(1e18)).value()) {
    return bad_input(fmt::format("--input synthetic:{}: {} bytes do not fit into memory", count,
                                 type.bytes()));
  }
  Tensor tensor(type);
  Rng rng(seed);
  for (float& value : tensor.as<float>()) {
    value = static_cast<float>(rng.normal());
  }
  return tensor;
}

Result<Tensor> from_file(const std::string& path, const VitConfig& model) {
  const auto file = SafetensorsFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto& tensors = file->header().tensors;
  const StoredTensor* images = tensors.size() == 1 ? &tensors.front() : file->find("images");
  if (images == nullptr) {
    return bad_input(
        fmt::format("{}: {} tensors, and none is called images; needed one of that name, or "
                    "one alone",
                    shown(path), tensors.size()));
  }
  // Before anything is read: what it is; then what is in it.
  if (images->type.dtype != DType::f32) {
    return bad_input(
        fmt::format("{}: images: {}; needed f32", shown(path), text(images->type)));
  }
  auto tensor = file->read(*images);
  if (!tensor) {
    return tensor.error();
  }
  if (const auto good = check_images(model, tensor->view()); !good) {
    return bad_input(fmt::format("{}: {}", shown(path), good.error().message));
  }
  return tensor;
}

}  // namespace

Result<InferInput> InferInput::open(const std::string& where,
                                    const VitConfig& model,
                                    std::uint64_t seed,
                                    const Target& target) {
  constexpr std::string_view kSynthetic = "synthetic:";
  auto tensor = where.starts_with(kSynthetic)
                    ? synthetic(model, where.substr(kSynthetic.size()), seed, target)
                    : from_file(where, model);
  if (!tensor) {
    return tensor.error();
  }
  InferInput input(model);
  input.tensor_ = std::move(*tensor);
  return input;
}

Result<InferInput> InferInput::of_pictures(const std::vector<std::string>& paths,
                                           const VitConfig& model) {
  if (model.channels != 3) {
    return bad_input(fmt::format("pictures have 3 channels, {} takes {}; needed --input",
                                 model.name, model.channels));
  }
  InferInput input(model);
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) {
        return bad_input(
            fmt::format("{}: not there; needed a picture or a folder", shown(path)));
      }
      input.paths_.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      if (at->is_regular_file(error) && is_picture_name(at->path().native())) {
        found.push_back(at->path().string());
      }
    }
    if (error) {
      return bad_input(fmt::format("{}: cannot be read: {}", shown(path), error.message()));
    }
    std::sort(found.begin(), found.end());
    input.paths_.insert(input.paths_.end(), found.begin(), found.end());
  }
  if (input.paths_.empty()) {
    return bad_input(fmt::format("{}: no picture in it; needed .jpg, .jpeg or .png files",
                                 shown(paths.front())));
  }
  return input;
}

std::optional<InferInput::Part> InferInput::next(std::int64_t most) {
  Part part;
  if (tensor_) {
    const Shape& all = tensor_->shape();
    const std::int64_t count = std::min(most, all[0] - at_);
    if (count <= 0) {
      return std::nullopt;
    }
    part.images = rows_as(tensor_->view(), at_, {DType::f32, all.with(0, count)});
    for (std::int64_t at = at_; at < at_ + count; ++at) {
      part.names.push_back(fmt::format("{}", at));
    }
    at_ += count;
    return part;
  }
  const Preprocessing how = preprocessing_of(model_.name, model_.image);
  const std::int64_t one = 3 * model_.image * model_.image;
  std::vector<std::uint8_t> pixels;
  for (; at_ < std::ssize(paths_) && std::ssize(part.names) < most; ++at_) {
    const std::string& path = paths_[static_cast<std::size_t>(at_)];
    auto image =
        read_picture(path, DecodePolicy{}, [&how](std::int64_t width, std::int64_t height) {
          return evaluation_part(width, height, how);
        });
    if (!image) {
      bad_.push_back(image.error().message);
      continue;
    }
    turned_ += image->turned ? 1 : 0;
    pixels.resize(pixels.size() + static_cast<std::size_t>(one));
    const std::span<std::uint8_t> own = std::span(pixels).last(static_cast<std::size_t>(one));
    to_tensor(framed(std::move(*image), how.size), how.normalisation, false,
              std::as_writable_bytes(own), DType::u8);
    part.names.push_back(path);
  }
  if (part.names.empty()) {
    return std::nullopt;
  }
  part.images = Tensor::of<std::uint8_t>(
      DType::u8, Shape{std::ssize(part.names), 3, model_.image, model_.image}, pixels);
  return part;
}

}  // namespace halfwatt

#include "cli/infer_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/remark.h"
#include "base/rng.h"
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

Result<ImageSource> image_source_asked(const Invocation& invocation, std::string_view command) {
  const std::string input = invocation.get("--input").value_or("");
  if (input.empty() == invocation.arguments().empty()) {
    return bad_input(input.empty()
                         ? fmt::format("{}: no pictures; needed PATH..., or --input with a "
                                       "safetensors file or synthetic:N",
                                       command)
                         : fmt::format("{}: needed PATH... or --input, and not both", command));
  }
  const auto seed = invocation.whole("--seed", 1, 0, 0x1p53);
  if (!seed) {
    return seed.error();
  }
  return ImageSource{input, invocation.arguments(), static_cast<std::uint64_t>(*seed)};
}

std::optional<Normalisation> normalisation_left(const ImageSource& source,
                                                const VitConfig& model) {
  return source.input.empty()
             ? std::optional(preprocessing_of(model.name, model.image).normalisation)
             : std::nullopt;
}

Result<InferInput> InferInput::open(const ImageSource& source,
                                    const VitConfig& model,
                                    const Target& target) {
  if (!source.paths.empty()) {
    return of_pictures(source.paths, model);
  }
  constexpr std::string_view kSynthetic = "synthetic:";
  auto tensor =
      source.input.starts_with(kSynthetic)
          ? synthetic(model, source.input.substr(kSynthetic.size()), source.seed, target)
          : from_file(source.input, model);
  if (!tensor) {
    return tensor.error();
  }
  InferInput input(model);
  input.tensor_ = std::move(*tensor);
  input.all_ = input.kept_ = input.tensor_->shape()[0];
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
  input.all_ = input.kept_ = std::ssize(input.paths_);
  return input;
}

std::optional<InferInput::Part> InferInput::next(std::int64_t most) {
  Part part = tensor_ ? next_rows(most) : next_pictures(most);
  read_ += std::ssize(part.names);
  return part.names.empty() ? std::nullopt : std::optional(std::move(part));
}

// Where the image is that is kept as number `at`.
std::int64_t InferInput::place(std::int64_t at) const { return at * all_ / kept_; }

InferInput::Part InferInput::next_rows(std::int64_t most) {
  Part part;
  const TensorType row{DType::f32, tensor_->shape().with(0, 1)};
  const std::int64_t count = std::min(most, kept_ - at_);
  part.images = Tensor(TensorType{DType::f32, row.shape.with(0, count)});
  auto to = part.images.view().bytes();
  for (; std::ssize(part.names) < count; ++at_) {
    const auto from =
        tensor_->view().bytes().subspan(static_cast<std::size_t>(place(at_)) * row.bytes());
    std::copy_n(from.begin(), row.bytes(), to.begin());
    to = to.subspan(row.bytes());
    part.names.push_back(fmt::format("{}", place(at_)));
  }
  return part;
}

InferInput::Part InferInput::next_pictures(std::int64_t most) {
  Part part;
  const Preprocessing how = preprocessing_of(model_.name, model_.image);
  const std::int64_t one = 3 * model_.image * model_.image;
  std::vector<std::uint8_t> pixels;
  for (; at_ < kept_ && std::ssize(part.names) < most; ++at_) {
    const std::string& path = paths_[static_cast<std::size_t>(place(at_))];
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
  part.images = Tensor::of<std::uint8_t>(
      DType::u8, Shape{std::ssize(part.names), 3, model_.image, model_.image}, pixels);
  return part;
}

Result<void> InferInput::tell() const {
  for (const std::string& line : bad_) {
    remark("left out: " + line);
  }
  if (turned_ > 0) {
    remark(turned_remark(turned_));
  }
  if (read_ == 0) {
    return bad_input(fmt::format("none of {} pictures could be read", bad_.size()));
  }
  if (!bad_.empty()) {
    remark(fmt::format("{} of {} pictures could not be read", bad_.size(),
                       std::ssize(bad_) + read_));
  }
  return {};
}

}  // namespace halfwatt

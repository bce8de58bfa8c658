#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/models/vit.h"
#include "engine/plan/target.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// What a model is asked about: a tensor in a file, random numbers, or pictures.
class InferInput {
 public:
  /// Some of it, to be computed at once.
  struct Part {
    Tensor images;                   ///< [N, C, S, S]: f32, or the bytes of pictures, u8
    std::vector<std::string> names;  ///< N: paths, or "0", "1", ... of a tensor
  };

  /// `where` is a safetensors file or synthetic:N. Errors (bad_input): what was found and what
  /// was needed; random numbers that do not fit into the memory of `target`.
  static Result<InferInput> open(const std::string& where,
                                 const VitConfig& model,
                                 std::uint64_t seed,
                                 const Target& target);
  /// Pictures, and folders of them at any depth, in the order of their names, as the model's
  /// evaluation wants to see them. Errors (bad_input): a path that is not there; no picture.
  static Result<InferInput> of_pictures(const std::vector<std::string>& paths,
                                        const VitConfig& model);

  /// What comes next, `most` images or fewer; nullopt behind the last. Pictures that cannot be
  /// read are left out and told in bad().
  std::optional<Part> next(std::int64_t most);
  /// A line for each picture that was left out so far.
  const std::vector<std::string>& bad() const { return bad_; }
  /// Pictures so far that were turned as their EXIF orientation says.
  std::int64_t turned() const { return turned_; }

 private:
  explicit InferInput(const VitConfig& model) : model_(model) {}

  VitConfig model_;
  std::optional<Tensor> tensor_;
  std::vector<std::string> paths_;
  std::int64_t at_ = 0;
  std::vector<std::string> bad_;
  std::int64_t turned_ = 0;
};

}  // namespace halfwatt

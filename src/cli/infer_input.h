#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "engine/data/preprocess.h"
#include "engine/models/vit.h"
#include "engine/plan/target.h"
#include "engine/tensor/tensor.h"

namespace halfwatt {

/// Where images come from, as a command line says it.
struct ImageSource {
  std::string input;               ///< of --input: a safetensors file or synthetic:N
  std::vector<std::string> paths;  ///< where that is empty: of pictures and folders
  std::uint64_t seed = 1;          ///< of --seed, for synthetic ones
};

/// Errors: neither PATH... nor --input, or both; no seed.
Result<ImageSource> image_source_asked(const Invocation& invocation, std::string_view command);
/// How the device is to normalise what comes from there: pictures come as bytes; nullopt: what
/// comes are numbers.
std::optional<Normalisation> normalisation_left(const ImageSource& source,
                                                const VitConfig& model);

/// What a model is asked about: a tensor in a file, random numbers, or pictures.
class InferInput {
 public:
  /// Some of it, to be computed at once.
  struct Part {
    Tensor images;                   ///< [N, C, S, S]: f32, or the bytes of pictures, u8
    std::vector<std::string> names;  ///< N: paths, or "0", "1", ... of a tensor
  };

  /// Pictures, and folders of them at any depth, come in the order of their names, as the
  /// model's evaluation wants to see them. Errors (bad_input): what was found and what was
  /// needed; random numbers that do not fit into the memory of `target`.
  static Result<InferInput> open(const ImageSource& source,
                                 const VitConfig& model,
                                 const Target& target);

  /// Only so many, evenly out of all that there are: a folder of classes has some of each.
  void keep(std::int64_t most) { kept_ = std::min(kept_, most); }

  /// What comes next, `most` images or fewer; nullopt behind the last. Pictures that cannot be
  /// read are left out and told in bad().
  std::optional<Part> next(std::int64_t most);
  /// Remarks on what was left out and turned. Errors: nothing could be read.
  Result<void> tell() const;
  /// A line for each picture that was left out so far.
  const std::vector<std::string>& bad() const { return bad_; }
  /// Images so far that were not.
  std::int64_t read() const { return read_; }

 private:
  explicit InferInput(const VitConfig& model) : model_(model) {}
  static Result<InferInput> of_pictures(const std::vector<std::string>& paths,
                                        const VitConfig& model);
  std::int64_t place(std::int64_t at) const;
  Part next_rows(std::int64_t most);
  Part next_pictures(std::int64_t most);

  VitConfig model_;
  std::optional<Tensor> tensor_;
  std::vector<std::string> paths_;
  std::int64_t all_ = 0;
  std::int64_t kept_ = 0;
  std::int64_t at_ = 0;  ///< of those that are kept
  std::int64_t read_ = 0;
  std::vector<std::string> bad_;
  std::int64_t turned_ = 0;  ///< as their EXIF orientation says
};

}  // namespace halfwatt

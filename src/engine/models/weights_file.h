#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/formats/safetensors.h"

namespace halfwatt {

/// The entry of a file's metadata that names the classes of its head, by label: a JSON list.
inline constexpr std::string_view kClassesKey = "classes";
/// The entry by which a file is the checkpoint of a training.
inline constexpr std::string_view kCheckpointKey = "halfwatt.checkpoint";

/// `names` as the metadata have them. What is not UTF-8 in one becomes U+FFFD.
std::string class_names_text(const std::vector<std::string>& names);
/// The names that `metadata` have; empty where there are none, or what is there is no list of
/// texts.
std::vector<std::string> class_names_in(const std::map<std::string, std::string>& metadata);

/// A safetensors file that holds the weights of a model: a file of them alone, or a checkpoint,
/// whose weights are what an evaluation computes with: averages, where it has any.
class WeightsFile {
 public:
  /// Errors: as SafetensorsFile::open().
  static Result<WeightsFile> open(const std::filesystem::path& path);

  struct Weight {
    std::string name;  ///< of the parameter
    const StoredTensor* stored = nullptr;
  };
  /// All that are in the file, in its order; of a checkpoint without moments, gradients and
  /// what else only a training needs.
  std::vector<Weight> weights() const;
  /// Where the file has the parameter of that name; nullptr if it does not.
  const StoredTensor* find(std::string_view name) const;
  /// Errors: as SafetensorsFile::read().
  Result<Tensor> read(const StoredTensor& stored) const { return file_.read(stored); }
  /// The file's, but for what makes it a checkpoint.
  std::map<std::string, std::string> metadata() const;

 private:
  explicit WeightsFile(SafetensorsFile file) : file_(std::move(file)) {}
  bool is_checkpoint() const;

  SafetensorsFile file_;
};

}  // namespace halfwatt

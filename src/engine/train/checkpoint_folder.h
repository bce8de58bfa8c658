#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/formats/file.h"
#include "engine/train/trainer.h"

namespace halfwatt {

/// The checkpoints of one training: a file `step-00000120.safetensors` for each that is kept,
/// and links `last.safetensors` and `best.safetensors` to two of them. Each is written whole
/// before a link points at it, so at every moment, of a power cut too, the links lead to good
/// ones.
class CheckpointFolder {
 public:
  struct Rule {
    std::int64_t every = 0;  ///< steps from one to the next; 0: only at an end of an epoch
    int keep = 1;            ///< of the latest; the best one is kept beside them
  };

  /// Makes the folder where it is not there, and takes it for this process until it is
  /// destroyed; what a killed save left behind is swept away. Errors (bad_input): no such
  /// folder can be made, or another training writes to it.
  static Result<CheckpointFolder> open(const std::filesystem::path& folder, const Rule& rule);

  /// Whether the rule asks for a checkpoint after that many steps.
  bool is_due(std::int64_t attempt) const {
    return rule_.every > 0 && attempt > 0 && attempt % rule_.every == 0;
  }
  /// Saves a training, as the last one, and as the best if its score is above all before. Then
  /// those go that are too many. Errors: as Trainer::save(), and then all is as it was; a link
  /// cannot be made.
  Result<void> save(Trainer& trainer, const TrainPosition& position);

  /// Where to go on from; nullopt if nothing was saved.
  std::optional<std::filesystem::path> last() const;
  std::optional<std::filesystem::path> best() const;
  std::optional<double> best_score() const { return best_score_; }

 private:
  CheckpointFolder(std::filesystem::path folder, const Rule& rule, FileDescriptor lock)
      : folder_(std::move(folder)), rule_(rule), lock_(std::move(lock)) {}
  std::filesystem::path file_of(std::int64_t attempt) const;
  std::vector<std::int64_t> attempts() const;
  std::optional<std::filesystem::path> target_of(const char* link) const;
  Result<void> point(const char* link, const std::filesystem::path& file) const;
  void sweep() const;
  void drop_old(std::int64_t attempt) const;

  std::filesystem::path folder_;
  Rule rule_;
  FileDescriptor lock_;  ///< the folder, open
  std::optional<double> best_score_;
};

}  // namespace halfwatt

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/device_id.h"
#include "cli/command.h"
#include "engine/train/fit.h"

namespace halfwatt {

/// A training as it was asked for, before any picture was seen.
struct TrainRequest {
  TrainRecipe recipe;  ///< classes, their names and the schedule's length follow from the data
  std::string data;
  std::string held_out;       ///< another source; empty: as the data says
  double held_out_share = 0;  ///< of the data, where it has no part of its own for it
  std::int64_t epochs = 1;
  double warmup_epochs = 0;
  std::filesystem::path out;
  std::string weights;  ///< to begin with; empty: none
  FineTuning fine_tuning;
  bool has_classes = false;  ///< --classes was given
  SourceOptions source;
  BadImages bad = BadImages::stop;
  bool augments = true;
  Augmentation augmentation;
  bool caches = false;
  CheckpointFolder::Rule checkpoints;
  bool resumes = false;
  bool dry_run = false;
  bool json = false;  ///< a line for every step on stdout, and no bar
  DeviceId device;
  bool deterministic = false;
  int threads = 0;
  int decode_threads = 0;
};

/// The flags of `train`, for its table and for read_train_request().
std::vector<Option> train_options();

/// Errors: a flag that is missing or wrong, in one line.
Result<TrainRequest> read_train_request(const Invocation& invocation);

}  // namespace halfwatt

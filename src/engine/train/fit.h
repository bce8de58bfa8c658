#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/augment.h"
#include "engine/data/loader.h"
#include "engine/data/preprocess.h"
#include "engine/train/checkpoint_folder.h"
#include "engine/train/trainer.h"

namespace halfwatt {

/// Pictures to learn from, and pictures to be asked about; both sources outlive the training.
struct FitData {
  const Source* train = nullptr;
  std::vector<std::int64_t> train_places;  ///< empty: all of them
  const Source* held_out = nullptr;        ///< nullptr: nothing is evaluated
  std::vector<std::int64_t> held_out_places;
  Preprocessing preprocessing;
  Augmentation augmentation;
  bool augments = true;  ///< else training sees pictures as an evaluation does
  BadImages bad = BadImages::stop;
  int threads = 1;  ///< that decode
};

/// A step that was done.
struct StepEvent {
  StepReport report;
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t step = 0;   ///< within the epoch, from 1
  std::int64_t steps = 0;  ///< of an epoch
  std::int64_t images = 0;
  Seconds took;    ///< since the step before was told of, waits for data included
  Seconds waited;  ///< of this, for data: of later steps, where the device goes on by itself
  std::vector<BadImage> bad;
};

/// An evaluation at the end of an epoch.
struct EvaluationEvent {
  std::int64_t epoch = 0;
  std::int64_t attempt = 0;
  Evaluation evaluation;
  std::vector<BadImage> bad;
};

/// What whoever watches a training wants of it next.
enum class Wish {
  go_on,
  save,  ///< now, and go on
  end,   ///< save and end
};

struct FitObserver {
  std::function<void(const StepEvent&)> on_step;
  std::function<void(const EvaluationEvent&)> on_evaluation;
  std::function<Wish()> wish;  ///< asked whenever a step was started
};

struct FitEnd {
  bool ended_early = false;  ///< as the observer wished
  std::optional<Evaluation> last;
};

/// Steps of an epoch; 0 where there are fewer pictures than a step takes.
std::int64_t steps_of_epoch(const FitData& data, std::int64_t images_of_step);

/// Trains from `from` until `epochs` epochs are done, evaluates at the end of each and saves
/// what `folder` is due. Where the device goes on by itself the observer hears of a step when
/// the next ones are on their way already. What is told to it was told before a checkpoint of
/// it is written. Pictures come to the trainer as its recipe says: as bytes that its device
/// normalises as `data` wants it, or normalised. Errors: a picture that cannot be read (its
/// name), a dead run (workload; nothing of it was saved), a checkpoint that cannot be written,
/// the device is lost.
Result<FitEnd> fit(Trainer& trainer,
                   const FitData& data,
                   std::int64_t epochs,
                   const TrainPosition& from,
                   CheckpointFolder& folder,
                   const FitObserver& observer);

}  // namespace halfwatt

#include "engine/train/fit.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <utility>

#include "base/check.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

Seconds now() {
  const std::chrono::duration<double> since =
      std::chrono::steady_clock::now().time_since_epoch();
  return Seconds(since.count());
}

std::int64_t images_in(const Source& source, const std::vector<std::int64_t>& places) {
  return places.empty() ? source.size() : static_cast<std::int64_t>(places.size());
}

/// What a loader shows of pictures, and what becomes of that.
struct Shown {
  Loader::View view;
  ViewPart part;
};

Shown shown_for_training(const FitData& data, DType dtype, std::uint64_t seed) {
  const auto key_of = [seed](std::int64_t place, std::int64_t epoch) {
    return ViewKey{seed, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(place)};
  };
  return {[&data, dtype, key_of](const Image& image, std::int64_t place, std::int64_t epoch,
                                 std::span<std::byte> to) {
            to_tensor(image, data.preprocessing.normalisation,
                      mirrored(data.augmentation, key_of(place, epoch)), to, dtype);
          },
          [&data, key_of](std::int64_t width, std::int64_t height, std::int64_t place,
                          std::int64_t epoch) {
            return part_of(
                training_view(data.augmentation, width, height, key_of(place, epoch)),
                data.preprocessing.size);
          }};
}

Shown shown_for_evaluation(const FitData& data, DType dtype) {
  return {
      [&data, dtype](const Image& image, std::int64_t, std::int64_t, std::span<std::byte> to) {
        to_tensor(framed(image, data.preprocessing.size), data.preprocessing.normalisation,
                  false, to, dtype);
      },
      [&data](std::int64_t width, std::int64_t height, std::int64_t, std::int64_t) {
        return evaluation_part(width, height, data.preprocessing);
      }};
}

LoaderOptions loader_options(const FitData& data,
                             DType dtype,
                             std::int64_t batch,
                             std::uint64_t seed) {
  LoaderOptions options;
  options.batch = batch;
  options.image = {dtype, Shape{3, data.preprocessing.size, data.preprocessing.size}};
  options.seed = seed;
  options.threads = data.threads;
  options.bad = data.bad;
  return options;
}

ImageSet as_set(Batch& batch, std::int64_t classes) {
  ImageSet set;
  set.images = std::move(batch.images);
  set.labels = std::move(batch.labels);
  set.classes = classes;
  return set;
}

class Fit {
 public:
  Fit(Trainer& trainer,
      const FitData& data,
      std::int64_t epochs,
      CheckpointFolder& folder,
      const FitObserver& observer)
      : trainer_(&trainer),
        data_(&data),
        dtype_(trainer.recipe().image_dtype()),
        epochs_(epochs),
        folder_(&folder),
        observer_(&observer) {}

  Result<FitEnd> run(const TrainPosition& from) {
    LoaderOptions options =
        loader_options(*data_, dtype_, trainer_->step_size(), trainer_->recipe().seed);
    options.places = data_->train_places;
    options.start = {from.epoch, from.image};
    options.epochs = epochs_;
    Shown shown = data_->augments ? shown_for_training(*data_, dtype_, trainer_->recipe().seed)
                                  : shown_for_evaluation(*data_, dtype_);
    options.part = std::move(shown.part);
    const auto loader = Loader::open(*data_->train, std::move(options), std::move(shown.view));
    if (!loader) {
      return loader.error();
    }
    FitEnd end;
    while (!end.ended_early) {
      const Seconds begun = now();
      auto batch = (*loader)->next();
      if (!batch) {
        return after_all_is_told(batch.error());
      }
      if (!*batch) {
        const auto told = tell(0);
        return told ? Result<FitEnd>(end) : told.error();
      }
      const auto done = step(**batch, begun);
      if (!done) {
        return done.error();
      }
      const auto saved = after_step(**batch, end);
      if (!saved) {
        return saved.error();
      }
    }
    return end;
  }

 private:
  // The device has one step to do while the pictures of the next are brought to it.
  static constexpr std::size_t kAhead = 2;

  /// A step that was started, and when the wait for its pictures began.
  struct Started {
    StepEvent event;
    Seconds begun;
  };

  Result<void> step(Batch& batch, Seconds begun) {
    StepEvent event;
    event.epoch = batch.at.epoch;
    event.images = batch.valid;
    event.steps = steps_of_epoch(*data_, trainer_->step_size());
    event.step = batch.at.images / trainer_->step_size() + 1;
    waited_ += batch.waited;
    event.bad = std::move(batch.bad);
    const auto started = trainer_->start(as_set(batch, data_->train->classes().size()));
    if (!started) {
      return after_all_is_told(started.error());
    }
    started_.push_back({std::move(event), begun});
    return tell(kAhead);
  }

  // Tells of the steps that are done, and waits until no more than `ahead` are not.
  Result<void> tell(std::size_t ahead) {
    while (!started_.empty()) {
      auto report = started_.size() > ahead ? waited_report() : trainer_->report_if_done();
      if (!report) {
        return report.error();
      }
      if (!*report) {
        return {};
      }
      if (const auto told = tell(std::move(**report)); !told) {
        return told.error();
      }
    }
    return {};
  }

  // What went wrong comes behind the steps that were done; one of these may be worse.
  Error after_all_is_told(const Error& error) {
    const auto told = tell(0);
    return told ? error : told.error();
  }

  Result<std::optional<StepReport>> waited_report() {
    auto report = trainer_->report();
    return report ? Result<std::optional<StepReport>>(std::move(*report)) : report.error();
  }

  Result<void> tell(StepReport report) {
    StepEvent event = std::move(started_.front().event);
    // Steps overlap: what counts is how much later than the last one each is told of.
    const Seconds begun = std::max(started_.front().begun, last_end_);
    started_.pop_front();
    last_end_ = now();
    event.took = last_end_ - begun;
    event.waited = std::exchange(waited_, Seconds());
    event.report = std::move(report);
    observer_->on_step(event);
    return event.report.state == NumericalState::dead
               ? Error{ErrorKind::workload,
                       fmt::format(
                           "the run is dead at step {}: {}; what was saved before is as "
                           "it was",
                           event.report.attempt, event.report.reason)}
               : Result<void>();
  }

  // Evaluates where an epoch ends, and saves what is due or wished.
  Result<void> after_step(const Batch& batch, FitEnd& end) {
    TrainPosition position{batch.next.epoch, batch.next.images, {}};
    const bool epoch_ends = batch.next.epoch > batch.at.epoch;
    if (epoch_ends && data_->held_out) {
      if (const auto told = tell(0); !told) {
        return told.error();
      }
      auto evaluation = evaluate(batch.at.epoch);
      if (!evaluation) {
        return evaluation.error();
      }
      position.score = static_cast<double>(evaluation->right) /
                       static_cast<double>(std::max<std::int64_t>(evaluation->images, 1));
      end.last = std::move(*evaluation);
    }
    const Wish wish = observer_->wish ? observer_->wish() : Wish::go_on;
    end.ended_early = wish == Wish::end && position.epoch < epochs_;
    if (!epoch_ends && wish == Wish::go_on && !folder_->is_due(trainer_->attempts())) {
      return {};
    }
    const auto told = tell(0);
    return told ? folder_->save(*trainer_, position) : told.error();
  }

  Result<Evaluation> evaluate(std::int64_t epoch) {
    LoaderOptions options = loader_options(*data_, dtype_, trainer_->recipe().batch, 0);
    options.training = false;
    options.places = data_->held_out_places;
    Shown shown = shown_for_evaluation(*data_, dtype_);
    options.part = std::move(shown.part);
    const auto loader =
        Loader::open(*data_->held_out, std::move(options), std::move(shown.view));
    if (!loader) {
      return loader.error();
    }
    EvaluationEvent event;
    event.epoch = epoch;
    event.attempt = trainer_->attempts();
    while (true) {
      auto batch = (*loader)->next();
      if (!batch) {
        return batch.error();
      }
      if (!*batch) {
        break;
      }
      event.bad.insert(event.bad.end(), (*batch)->bad.begin(), (*batch)->bad.end());
      if ((*batch)->valid == 0) {
        continue;
      }
      auto part = trainer_->evaluate(counted(**batch));
      if (!part) {
        return part.error();
      }
      event.evaluation.add(*part);
    }
    observer_->on_evaluation(event);
    return event.evaluation;
  }

  // The pictures of a batch that are there; the last one may have fewer.
  ImageSet counted(Batch& batch) const {
    const std::int64_t classes = data_->held_out->classes().size();
    if (batch.images.shape()[0] == batch.valid) {
      return as_set(batch, classes);
    }
    ImageSet set;
    const TensorType type{dtype_, batch.images.shape().with(0, batch.valid)};
    set.images = rows_as(batch.images.view(), 0, type);
    set.labels = std::move(batch.labels);
    set.classes = classes;
    return set;
  }

  Trainer* trainer_;
  const FitData* data_;
  DType dtype_;  ///< of pictures as the model takes them
  std::int64_t epochs_;
  CheckpointFolder* folder_;
  const FitObserver* observer_;
  std::deque<Started> started_;
  Seconds last_end_;  ///< when the last step was told of
  Seconds waited_;    ///< for data since then
};

}  // namespace

std::int64_t steps_of_epoch(const FitData& data, std::int64_t images_of_step) {
  return images_in(*data.train, data.train_places) / images_of_step;
}

Result<FitEnd> fit(Trainer& trainer,
                   const FitData& data,
                   std::int64_t epochs,
                   const TrainPosition& from,
                   CheckpointFolder& folder,
                   const FitObserver& observer) {
  const auto& by_device = trainer.recipe().normalisation;
  HALFWATT_CHECK(!by_device || *by_device == data.preprocessing.normalisation,
                 "a device that normalises as the data wants it");
  return Fit(trainer, data, epochs, folder, observer).run(from);
}

}  // namespace halfwatt

#include "cli/train.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/remark.h"
#include "cli/compute_device.h"
#include "cli/interruptions.h"
#include "cli/output.h"
#include "cli/train_request.h"
#include "cli/train_teller.h"
#include "engine/backend/cpu/kernels/available_threads.h"
#include "engine/data/available_memory.h"
#include "engine/data/picture_file.h"
#include "engine/data/ram_cache.h"
#include "engine/passes/preflight.h"
#include "workloads/training_log.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";

/// The pictures of a training, and who owns them.
struct Pictures {
  std::unique_ptr<CacheRoom> room;  ///< of all caches; absent where nothing is kept
  std::vector<std::unique_ptr<Source>> sources;
  FitData data;
};

// Half of what is free: the network needs some, too.
Result<std::unique_ptr<CacheRoom>> room_for_caches(const TrainRequest& request) {
  if (!request.caches) {
    return std::unique_ptr<CacheRoom>();
  }
  const auto free = available_memory();
  if (!free) {
    return bad_input(
        "--cache ram: how much memory is free is unknown, as /proc/meminfo does not say it: "
        "leave the cache off");
  }
  return std::make_unique<CacheRoom>(*free / 2);
}

Result<const Source*> open_one(const TrainRequest& request,
                               const std::string& where,
                               CifarPart part,
                               Pictures& pictures) {
  SourceOptions options = request.source;
  options.part = part;
  options.synthetic.side = request.recipe.model.image;
  options.synthetic.seed = request.recipe.seed;
  if (request.has_classes) {
    options.synthetic.classes = request.recipe.model.classes;
  }
  auto source = open_source(where, options);
  if (!source) {
    return source.error();
  }
  for (const std::string& line : (*source)->remarks()) {
    remark(line);
  }
  pictures.sources.push_back(std::move(*source));
  if (!pictures.room) {
    return pictures.sources.back().get();
  }
  auto cached = cached_in_ram(*pictures.sources.back(), *pictures.room);
  if (!cached) {
    return cached.error();
  }
  pictures.sources.push_back(std::move(*cached));
  return pictures.sources.back().get();
}

// A folder that has a part for training and one to be asked about is both.
std::string part_of(const std::string& data, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fs::is_directory(fs::path(data) / name)) {
      return (fs::path(data) / name).string();
    }
  }
  return {};
}

Result<void> open_held_out(const TrainRequest& request, Pictures& pictures) {
  const std::string train = part_of(request.data, {"train"});
  std::string held_out = request.held_out;
  if (held_out.empty() && !train.empty()) {
    held_out = part_of(request.data, {"val", "validation", "test"});
  }
  const bool cifar =
      held_out.empty() && (fs::exists(fs::path(request.data) / "test_batch.bin") ||
                           fs::exists(fs::path(request.data) / "test.bin"));
  FitData& data = pictures.data;
  if (!held_out.empty() || cifar) {
    auto source = open_one(request, cifar ? request.data : held_out, CifarPart::test, pictures);
    if (!source) {
      return source.error();
    }
    data.held_out = *source;
    if (const auto differs = data.train->classes().compare(data.held_out->classes())) {
      return bad_input(fmt::format("{}: its classes are not those of {}: {}",
                                   cifar ? request.data : held_out, request.data, *differs));
    }
    return {};
  }
  if (request.held_out_share > 0) {
    std::vector<std::int64_t> labels;
    for (std::int64_t place = 0; place < data.train->size(); ++place) {
      labels.push_back(data.train->label(place));
    }
    Split split = stratified(labels, request.held_out_share, request.recipe.seed);
    if (!split.held_out.empty()) {
      data.held_out = data.train;
      data.train_places = std::move(split.train);
      data.held_out_places = std::move(split.held_out);
    }
  }
  return {};
}

Result<Pictures> open_pictures(TrainRequest& request) {
  auto room = room_for_caches(request);
  if (!room) {
    return room.error();
  }
  Pictures pictures;
  pictures.room = std::move(*room);
  const std::string train = part_of(request.data, {"train"});
  auto source =
      open_one(request, train.empty() ? request.data : train, CifarPart::train, pictures);
  if (!source) {
    return source.error();
  }
  FitData& data = pictures.data;
  data.train = *source;
  const ClassMap& classes = data.train->classes();
  if (request.has_classes && request.recipe.model.classes < classes.size() &&
      !(request.recipe.model.classes == 1 && classes.size() == 2)) {
    return bad_input(fmt::format("--classes {}: {} has {} classes",
                                 request.recipe.model.classes, request.data, classes.size()));
  }
  if (!request.has_classes) {
    request.recipe.model.classes = classes.size();
  }
  request.recipe.class_names = classes.names();
  if (const auto done = open_held_out(request, pictures); !done) {
    return done.error();
  }
  data.preprocessing = preprocessing_of(request.recipe.model.name, request.recipe.model.image);
  request.recipe.normalisation = data.preprocessing.normalisation;
  data.augmentation = request.augmentation;
  data.augments = request.augments;
  data.bad = request.bad;
  data.threads = request.decode_threads;
  return pictures;
}

Result<void> check_numbers(const TrainRequest& request) {
  const Preflight found = preflight(request.recipe.precision, request.recipe.optimizer);
  if (found.dies) {
    return bad_input(found.reasons.front());
  }
  for (const std::string& reason : found.reasons) {
    remark(reason);
  }
  return {};
}

Result<void> tell_plan(const TrainRequest& request, const FitData& data, Backend& backend) {
  const auto plans = training_plans(request.recipe, backend.target());
  if (!plans) {
    return plans.error();
  }
  std::vector<const Plan*> all;
  for (const Plan& plan : *plans) {
    all.push_back(&plan);
  }
  const std::int64_t step = request.recipe.batch * request.recipe.micro_batches;
  const std::size_t held_out = data.held_out_places.empty() && data.held_out
                                   ? static_cast<std::size_t>(data.held_out->size())
                                   : data.held_out_places.size();
  return print(fmt::format(
      "{} classes; {} pictures to learn from, {} held out; {} epochs of {} steps of {} "
      "pictures in {}; {:.1f} MiB while it trains\n",
      data.train->classes().size(),
      data.train_places.empty() ? data.train->size()
                                : static_cast<std::int64_t>(data.train_places.size()),
      held_out, request.epochs, steps_of_epoch(data, step), step, request.recipe.precision.name,
      static_cast<double>(shared_footprint(all, 0).total()) / (1 << 20)));
}

// Where the training begins: at a checkpoint, at somebody's weights, or anew.
Result<TrainPosition> begin(const TrainRequest& request,
                            Trainer& trainer,
                            const CheckpointFolder& folder) {
  const auto last = folder.last();
  if (request.resumes && last) {
    auto resumed = trainer.restore(*last);
    if (!resumed) {
      return resumed.error();
    }
    for (const std::string& warning : resumed->warnings) {
      remark(warning);
    }
    remark(fmt::format("goes on behind step {}, from {}", trainer.attempts(), last->string()));
    return resumed->position;
  }
  if (last) {
    return bad_input(
        fmt::format("{}: a training is there already; needed --resume, or another --out",
                    request.out.string()));
  }
  if (!request.weights.empty()) {
    const auto loaded = trainer.begin_with(request.weights, request.fine_tuning);
    if (!loaded) {
      return loaded.error();
    }
    if (loaded->not_finite > 0) {
      return Error{ErrorKind::workload,
                   fmt::format("{}: {} numbers are not finite, the first in {}: it is dead",
                               request.weights, loaded->not_finite, loaded->first_not_finite)};
    }
    for (const std::string& change : loaded->changes) {
      remark(change);
    }
  }
  return TrainPosition{};
}

// What of the recipe follows from how many pictures there are.
Result<void> set_lengths(TrainRequest& request, const FitData& data) {
  const std::int64_t step = request.recipe.batch * request.recipe.micro_batches;
  const std::int64_t steps = steps_of_epoch(data, step);
  if (steps == 0) {
    return bad_input(
        fmt::format("{}: fewer pictures to learn from than a step takes, {}; needed a "
                    "smaller --batch",
                    request.data, step));
  }
  Optimizer& optimizer = request.recipe.optimizer;
  optimizer.total = steps * request.epochs;
  optimizer.warmup =
      static_cast<std::int64_t>(request.warmup_epochs * static_cast<double>(steps));
  return {};
}

Result<void> run_to_its_end(const TrainRequest& request,
                            const FitData& data,
                            Trainer& trainer) {
  auto folder = CheckpointFolder::open(request.out, request.checkpoints);
  if (!folder) {
    return folder.error();
  }
  const auto from = begin(request, trainer, *folder);
  if (!from) {
    return from.error();
  }
  const SteadyClock clock;
  const auto meter = open_meter(request.device, clock);
  auto log = TrainingLog::open(request.out, trainer.attempts(), meter ? meter->get() : nullptr);
  if (!log) {
    return log.error();
  }
  handle_interruptions();
  handle_saves();
  TrainTeller teller(request, *log, clock);
  const FitObserver observer{[&](const StepEvent& event) { teller.tell(event); },
                             [&](const EvaluationEvent& event) { teller.tell(event); },
                             [&] {
                               return interruption_is_asked() || log->failure() ? Wish::end
                                      : save_is_asked()                         ? Wish::save
                                                                                : Wish::go_on;
                             }};
  const auto end = fit(trainer, data, request.epochs, *from, *folder, observer);
  if (!end) {
    return end.error();
  }
  if (log->failure()) {
    return *log->failure();
  }
  if (end->ended_early) {
    return Error{ErrorKind::interrupted,
                 fmt::format("interrupted behind step {}; --resume goes on from there",
                             trainer.attempts())};
  }
  // What was evaluated is what is handed over: the averages, where there are any.
  return save_weights(request.out / kWeights, trainer.states(), SavedWeights::averages,
                      request.recipe.class_names);
}

void tell_turned(const FitData& data) {
  const bool apart = data.held_out != nullptr && data.held_out != data.train;
  const std::int64_t turned = data.train->turned() + (apart ? data.held_out->turned() : 0);
  if (turned > 0) {
    remark(turned_remark(turned));
  }
}

Result<void> train(TrainRequest request) {
  auto pictures = open_pictures(request);
  if (!pictures) {
    return pictures.error();
  }
  if (const auto fine = set_lengths(request, pictures->data); !fine) {
    return fine.error();
  }
  if (const auto fine = check_numbers(request); !fine) {
    return fine.error();
  }
  const auto backend = open_backend(request.device, request.threads, request.deterministic);
  if (!backend) {
    return backend.error();
  }
  if (request.dry_run) {
    return tell_plan(request, pictures->data, **backend);
  }
  auto trainer = Trainer::open(request.recipe, **backend);
  if (!trainer) {
    return trainer.error();
  }
  const auto done = run_to_its_end(request, pictures->data, **trainer);
  tell_turned(pictures->data);
  return done;
}

int run(const Invocation& invocation) {
  auto request = read_train_request(invocation);
  if (request && request->threads == 0) {
    request->threads = cpu::available_threads();
  }
  if (request && request->decode_threads == 0) {
    request->decode_threads = std::max(1, request->threads / 2);
  }
  const Result<void> done = request ? train(std::move(*request)) : request.error();
  if (done) {
    return 0;
  }
  remark(done.error().message);
  // As a shell tells of a command that a signal ended.
  constexpr int kBySignal = 128;
  return done.error().kind == ErrorKind::interrupted ? kBySignal + interruption_signal()
                                                     : exit_code(done.error().kind);
}

}  // namespace

Command train_command() {
  Command command;
  command.name = "train";
  command.summary = "pictures in, a model out";
  command.description =
      "Trains a ViT on pictures, from the beginning or from timm's weights, on this machine's "
      "processors or an NVIDIA card. In --out it keeps checkpoints (last.safetensors, "
      "best.safetensors), "
      "model.safetensors with timm's names when it is done, metrics.jsonl and "
      "speed.jsonl.\n\nINT, HUP and TERM save a checkpoint and end (exit status 130, 129, "
      "143), USR1 "
      "saves and goes on; --resume goes on where the last checkpoint is, to the same bits "
      "as if nothing had been, however it ended. A run whose loss or weights are not finite "
      "ends with exit status 4, and nothing of it is saved.";
  command.options = train_options();
  command.examples = {
      {"halfwatt train --data photos --weights vit_tiny.safetensors --reset-head --epochs 10 "
       "--precision amp-bf16 --out run1",
       "fine-tunes timm's weights on your classes"},
      {"halfwatt train --data photos --epochs 10 --out run1 --resume", "after a power cut"},
  };
  command.run_job = run;
  return command;
}

}  // namespace halfwatt

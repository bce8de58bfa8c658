#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/failure.h"
#include "engine/models/fine_tuning.h"
#include "engine/models/images.h"
#include "engine/models/initial.h"
#include "engine/ops/delayed_scaling.h"
#include "engine/passes/delayed_scaling.h"
#include "engine/passes/pipeline.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

double number(const Session::Numbers& results, std::string_view name) {
  return doubles(results.result(name))[0];
}

// To be read only.
TensorView labels_of(const ImageSet& set) {
  auto* const labels = const_cast<std::int64_t*>(set.labels.data());
  return {{DType::i64, Shape{set.size()}}, reinterpret_cast<std::byte*>(labels)};
}

}  // namespace

Result<std::vector<Plan>> training_plans(const TrainRecipe& recipe, const Target& target) {
  Compilation asked;
  asked.precision = recipe.precision;
  asked.overrides = recipe.overrides;
  asked.optimizer = recipe.optimizer;
  if (recipe.layer_decay != 1) {
    asked.optimizer->rate_shares = layer_rates(recipe.model, recipe.layer_decay);
  }
  asked.freeze = recipe.freeze;
  asked.micro_batches = recipe.micro_batches;
  asked.recompute = recipe.recompute;
  asked.targets = {target};
  const auto model = [&](ModelMode mode) {
    return vit(recipe.model, recipe.batch, mode, recipe.smoothing, recipe.normalisation);
  };
  auto train = compile(model(ModelMode::train), asked);
  asked.optimizer.reset();
  asked.averages = recipe.optimizer.average > 0;
  auto evaluate = compile(model(ModelMode::evaluate), asked);
  if (!train || !evaluate) {
    return train ? evaluate.error() : train.error();
  }
  std::vector<Graph> graphs = {std::move(train->graph), std::move(evaluate->graph)};
  if (train->update) {
    graphs.push_back(std::move(*train->update));
  }
  std::vector<Plan> all;
  for (const Graph& graph : graphs) {
    auto plan = lower(graph, {&target, 1});
    if (!plan) {
      return plan.error();
    }
    all.push_back(std::move(*plan));
  }
  return all;
}

Result<std::unique_ptr<Trainer>> Trainer::open(const TrainRecipe& recipe, Backend& backend) {
  std::unique_ptr<Trainer> trainer(new Trainer(recipe, backend));
  auto plans = training_plans(recipe, backend.target());
  if (!plans) {
    return plans.error();
  }
  trainer->gradients_ = gradient_names((*plans)[kTrain].graph);
  auto session = Session::open(std::move(*plans), {&backend}, trainer->states_);
  if (!session) {
    return session.error();
  }
  trainer->session_ = std::move(*session);
  if (const auto done = trainer->initialise(); !done) {
    return done.error();
  }
  return trainer;
}

Result<void> Trainer::initialise() {
  for (const StateSpec& state : vit_parameters(recipe_.model)) {
    parameters_ += state.type.shape.elements();
    if (!states_.has(state.name)) {
      // Frozen, and only its copy is computed with: it is saved as it came all the same.
      states_.ensure(state, *backend_);
    }
    if (const auto done = states_.load(state.name, initial_value(state, recipe_.seed).view());
        !done) {
      return done.error();
    }
  }
  for (const std::string& name : gradients_) {
    learning_ += states_.spec(name).type.shape.elements();
  }
  return begin_averages();
}

// An average of one value is that value, not a part of it.
Result<void> Trainer::begin_averages() {
  for (const std::string& name : states_.names()) {
    const StateSpec& state = states_.spec(name);
    if (state.role != StateRole::average) {
      continue;
    }
    if (const auto done = states_.load(name, states_.save(state.of).view()); !done) {
      return done.error();
    }
  }
  return {};
}

Result<WeightsReport> Trainer::begin_with(const std::filesystem::path& path,
                                          const FineTuning& how) {
  auto report = load_weights(path, states_, how);
  if (!report) {
    return report.error();
  }
  if (const auto done = begin_averages(); !done) {
    return done.error();
  }
  return report;
}

Result<void> Trainer::save(const std::filesystem::path& path, const TrainPosition& position) {
  if (const auto settled = settle(); !settled) {
    return settled.error();
  }
  if (state() == NumericalState::dead) {
    return Error{ErrorKind::workload,
                 fmt::format("the run is dead and is not saved: {}", watch_.reason())};
  }
  TrainProgress progress = progress_;
  progress.watch = watch_.memory();
  progress.position = position;
  return write_checkpoint(path, recipe_, backend_->target(), states_, progress);
}

Result<Trainer::Resumed> Trainer::restore(const std::filesystem::path& path) {
  if (const auto settled = settle(); !settled) {
    return settled.error();
  }
  reports_.clear();
  auto restored = read_checkpoint(path, recipe_, backend_->target(), states_);
  if (!restored) {
    return restored.error();
  }
  progress_ = std::move(restored->progress);
  watch_ = NumericalWatch(progress_.watch);
  return Resumed{progress_.position, std::move(restored->warnings)};
}

void Trainer::bind_key(int plan, std::int64_t first_sample) {
  const std::vector<std::int64_t> key = {static_cast<std::int64_t>(recipe_.seed),
                                         progress_.attempt, first_sample};
  session_->bind(plan, kRandom, Tensor::of<std::int64_t>(DType::i64, Shape{3}, key).view());
}

void Trainer::bind(int plan, const ImageSet& images, std::int64_t first, std::int64_t valid) {
  for (const PlanInput& input : session_->plan(plan).inputs) {
    if (input.name == "images") {
      session_->bind(plan, input.name,
                     [&](const TensorView& to) { rows_into(images.images.view(), first, to); });
    } else if (input.name == "labels") {
      session_->bind(plan, input.name,
                     [&](const TensorView& to) { rows_into(labels_of(images), first, to); });
    } else if (input.name == "valid") {
      session_->bind(plan, input.name,
                     [&](const TensorView& to) { to.as<std::int64_t>()[0] = valid; });
    } else {
      bind_key(plan, progress_.part * recipe_.batch);
    }
  }
}

Result<void> Trainer::check(const ImageSet& images) const {
  const VitConfig& model = recipe_.model;
  if (const auto fine = check_image_type(model, images.images.type(), recipe_.image_dtype());
      !fine) {
    return fine.error();
  }
  if (images.images.shape()[0] != images.size()) {
    return bad_input(
        fmt::format("images: {}, and {} labels", images.images.shape()[0], images.size()));
  }
  // One logit tells two classes apart.
  if (const auto classes = std::max<std::int64_t>(model.classes, 2); images.classes > classes) {
    return bad_input(fmt::format("labels: of {} classes; {} tells {} apart", images.classes,
                                 model.name, classes));
  }
  return {};
}

Result<void> Trainer::start(const ImageSet& images) {
  if (const auto fine = check(images); !fine) {
    return fine.error();
  }
  if (images.size() != images_left()) {
    return bad_input(fmt::format("images: {} of them; {} {}", images.size(),
                                 progress_.part == 0 ? "a step takes" : "the step still needs",
                                 images_left()));
  }
  for (std::int64_t first = 0; first < images.size(); first += recipe_.batch) {
    if (const auto started = start_part(images, first); !started) {
      return started.error();
    }
  }
  return {};
}

Result<StepReport> Trainer::step(const ImageSet& images) {
  HALFWATT_CHECK(reports_due() == 0, "a step whose report is the next one");
  if (const auto started = start(images); !started) {
    return started.error();
  }
  return report();
}

Result<std::optional<StepReport>> Trainer::micro_step(const ImageSet& images) {
  if (const auto fine = check(images); !fine) {
    return fine.error();
  }
  if (images.size() != recipe_.batch) {
    return bad_input(fmt::format("images: {} of them; a micro-batch takes {}", images.size(),
                                 recipe_.batch));
  }
  if (const auto started = start_part(images, 0); !started) {
    return started.error();
  }
  if (progress_.part > 0) {
    return std::optional<StepReport>();
  }
  HALFWATT_CHECK(reports_due() == 1, "a step whose report is the next one");
  auto last = report();
  return last ? Result<std::optional<StepReport>>(std::move(*last)) : last.error();
}

Result<void> Trainer::start_part(const ImageSet& images, std::int64_t first) {
  const bool begins = progress_.part == 0;
  const bool ends = progress_.part + 1 == recipe_.micro_batches;
  const bool updates = ends && recipe_.micro_batches > 1;
  if (begins) {
    ++progress_.attempt;
  }
  try {
    bind(kTrain, images, first, recipe_.batch);
  } catch (const Failure& lost) {
    return lost.error();
  }
  progress_.part = ends ? 0 : progress_.part + 1;
  if (const auto started = start_run(kTrain, begins, ends && !updates); !started || !updates) {
    return started;
  }
  if (session_->has_input(kUpdate, kRandom)) {
    bind_key(kUpdate, 0);
  }
  return start_run(kUpdate, false, true);
}

Result<void> Trainer::start_run(int plan, bool begins_step, bool ends_step) {
  if (session_->started() == Snapshots::kMost) {
    if (const auto taken = take_run(); !taken) {
      return taken.error();
    }
  }
  if (const auto started = session_->start(plan); !started) {
    return started.error();
  }
  runs_.push_back({progress_.attempt, begins_step, ends_step});
  due_ += ends_step ? 1 : 0;
  return {};
}

// Waits for the oldest run and notes what it gave.
Result<void> Trainer::take_run() {
  const auto numbers = session_->take();
  if (!numbers) {
    return numbers.error();
  }
  const Run run = runs_.front();
  runs_.pop_front();
  if (run.begins_step) {
    progress_.loss = 0;
  }
  if (numbers->plan() == kTrain) {
    progress_.loss += number(*numbers, "loss") / static_cast<double>(recipe_.micro_batches);
  }
  if (run.ends_step) {
    reports_.push_back(report_of(*numbers, run.attempt));
    --due_;
  }
  return {};
}

Result<void> Trainer::settle() {
  while (!runs_.empty()) {
    if (const auto taken = take_run(); !taken) {
      return taken.error();
    }
  }
  return {};
}

Result<StepReport> Trainer::report() {
  HALFWATT_CHECK(reports_due() > 0, "a step that was started");
  while (reports_.empty()) {
    if (const auto taken = take_run(); !taken) {
      return taken.error();
    }
  }
  StepReport oldest = std::move(reports_.front());
  reports_.pop_front();
  return oldest;
}

Result<std::optional<StepReport>> Trainer::report_if_done() {
  while (reports_.empty() && !runs_.empty()) {
    const auto done = session_->is_done();
    if (!done || !*done) {
      return done ? Result<std::optional<StepReport>>(std::nullopt) : done.error();
    }
    if (const auto taken = take_run(); !taken) {
      return taken.error();
    }
  }
  if (reports_.empty()) {
    return std::optional<StepReport>();
  }
  auto oldest = report();
  return oldest ? Result<std::optional<StepReport>>(std::move(*oldest)) : oldest.error();
}

StepReport Trainer::report_of(const Session::Numbers& results, std::int64_t attempt) {
  const bool scales = recipe_.precision.scale != Precision::Scale::none;
  StepNumbers numbers;
  numbers.loss = progress_.loss;
  numbers.overflowed = number(results, "skipped") != 0;
  numbers.skipped = scales && numbers.overflowed;
  numbers.least_scale = recipe_.optimizer.floor_scale;
  numbers.parameters = learning_;
  const double base = recipe_.optimizer.rate;
  numbers.rate_share = base > 0 ? number(results, "rate") / base : 1;
  if (scales) {
    numbers.scale = number(results, "scale");
  }
  if (const auto bad = static_cast<std::int64_t>(number(results, "first_bad")); bad >= 0) {
    numbers.first_bad = gradients_[static_cast<std::size_t>(bad)];
  }
  for (const std::string& name : gradients_) {
    const std::vector<double> tally = doubles(results.result("tally:" + name));
    if (tally[0] > 0 && numbers.not_finite == 0) {
      numbers.first_bad = name;
    }
    numbers.not_finite += static_cast<std::int64_t>(tally[0]);
    numbers.unchanged += static_cast<std::int64_t>(tally[1]);
  }
  StepReport report;
  report.attempt = attempt;
  report.loss = numbers.loss;
  report.gradient_norm = number(results, "gradient_norm");
  report.rate = number(results, "rate");
  report.scale = numbers.scale;
  report.skipped = numbers.skipped;
  report.state = watch_.see(numbers);
  report.reason = watch_.reason();
  if (!report.skipped) {
    report.warnings = amax_warnings(results);
  }
  return report;
}

// An infinite amax would say of a scale that everything is to be 0.
std::vector<std::string> Trainer::amax_warnings(const Session::Numbers& results) const {
  std::vector<std::string> warnings;
  for (const PlanResult& result : session_->plan(results.plan()).results) {
    if (result.name.rfind(kAmax, 0) != 0) {
      continue;
    }
    if (const double amax = number(results, result.name); !std::isfinite(amax)) {
      const std::string operand = result.name.substr(kAmax.size());
      const std::string history = operand + std::string(kFp8History);
      warnings.push_back(fmt::format(
          "the largest magnitude of {} is {}: its fp8 scale stays as it is for up to {} steps",
          operand, amax, states_.spec(history).type.shape[0]));
    }
  }
  return warnings;
}

Result<Evaluation> Trainer::evaluate(const ImageSet& images) {
  if (const auto fine = images.size() > 0 ? check(images) : Result<void>(); !fine) {
    return fine.error();
  }
  if (const auto settled = settle(); !settled) {
    return settled.error();
  }
  Evaluation sum;
  for (std::int64_t first = 0; first < images.size(); first += recipe_.batch) {
    try {
      if (const auto added = evaluate_part(images, first, sum); !added) {
        return added.error();
      }
    } catch (const Failure& lost) {
      return lost.error();
    }
  }
  sum.loss /= static_cast<double>(std::max<std::int64_t>(sum.images, 1));
  return sum;
}

Result<void> Trainer::evaluate_part(const ImageSet& images,
                                    std::int64_t first,
                                    Evaluation& sum) {
  const std::int64_t valid = std::min(recipe_.batch, images.size() - first);
  bind(kEvaluate, images, first, valid);
  if (const auto ran = session_->run(kEvaluate); !ran) {
    return ran.error();
  }
  sum.loss += doubles(session_->result(kEvaluate, "loss"))[0] * static_cast<double>(valid);
  const std::vector<double> logits = doubles(session_->result(kEvaluate, "logits"));
  const auto classes = static_cast<std::size_t>(recipe_.model.classes);
  for (std::int64_t row = 0; row < valid; ++row) {
    sum.count(std::span(logits).subspan(static_cast<std::size_t>(row) * classes, classes),
              images.labels[static_cast<std::size_t>(first + row)]);
  }
  return {};
}

}  // namespace halfwatt

// bench_vit_rows MODEL train|infer PRECISION BATCH cpu|gpu:N WEIGHTS.safetensors
// BATCH.safetensors: halfwatt's side of torch_vit.py, in a process that stays. MODEL has one
// logit; the files are of the parameters under timm's names, and of `images` (F32 [N, C, S, S])
// and `labels` (F32 [N, 1]).
//
// The plan is the one that Trainer and Inference run, in a Session of its own: they bring
// images to the device in every step and read its numbers back, which is no part of a step
// here, on either side. Answers each line of its input, `first` (does the first
// step) and then `window SECONDS`, with a line of JSON; ends with the input.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/device_id.h"
#include "base/numerical_state.h"
#include "cli/compute_device.h"
#include "cli/help.h"
#include "engine/exec/session.h"
#include "engine/formats/safetensors.h"
#include "engine/infer/inference.h"
#include "engine/models/weights.h"
#include "engine/train/trainer.h"
#include "peers/vit_peer.h"

namespace halfwatt {
namespace {

// The lead-in of a window, which is not timed: torch_vit_variant.py has the same.
constexpr double kLeadSeconds = 0.25;
constexpr int kLeadSteps = 3;
// The rate of the study, which torch_vit_variant.py has too.
constexpr double kRate = 1e-5;
// More logits than these say nothing new.
constexpr std::size_t kMostFirst = 64;

struct Asked {
  VitConfig model;
  bool trains = false;
  Precision precision;
  std::int64_t batch = 0;
  DeviceId device;
  std::string weights;
  std::string data;
};

Asked read(const std::vector<std::string>& words) {
  if (words.size() != 7 || (words[1] != "train" && words[1] != "infer")) {
    give_up(
        "needed MODEL train|infer PRECISION BATCH cpu|gpu:N WEIGHTS.safetensors "
        "BATCH.safetensors");
  }
  Asked asked{taken(vit_named(words[0])),
              words[1] == "train",
              taken(precision_named(words[2])),
              whole_number("batch", words[3]),
              computing_device(words[4]),
              words[5],
              words[6]};
  asked.model.classes = 1;
  return asked;
}

Plan plan_of(const Asked& asked, const Target& target) {
  if (!asked.trains) {
    return taken(inference_plan({asked.model, asked.precision, {}, asked.batch}, target));
  }
  TrainRecipe recipe;
  recipe.model = asked.model;
  recipe.precision = asked.precision;
  recipe.optimizer = pytorchs_adamw(asked.precision, kRate);
  recipe.batch = asked.batch;
  Plan plan = std::move(taken(training_plans(recipe, target)).front());
  for (PlanInput& input : plan.inputs) {
    input.fed_ahead = false;  // the batch stays
  }
  return plan;
}

double now() {
  // As Python's time.monotonic(), so that whoever reads the meter knows which part is meant.
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A plan on a device with weights and a batch there, ready for steps.
class Row {
 public:
  Row(const Asked& asked, Backend& backend) : trains_(asked.trains) {
    std::vector<Plan> plans;
    plans.push_back(plan_of(asked, backend.target()));
    session_ = taken(Session::open(std::move(plans), {&backend}, states_));
    taken(load_weights(asked.weights, states_));
    bind(asked);
  }

  /// Enqueues a step, as torch's calls do.
  void step() {
    if (session_->started() == Snapshots::kMost) {
      taken(session_->take());
    }
    done(session_->start(0));
  }
  void wait() {
    while (session_->started() > 0) {
      taken(session_->take());
    }
  }
  /// Training steps that changed the weights, of all so far.
  std::int64_t applied() const {
    return trains_ ? states_.save(kApplied).as<std::int64_t>()[0] : 0;
  }
  /// The loss, or some logits, of the last step.
  std::vector<double> numbers() const {
    std::vector<double> values = result(trains_ ? "loss" : "logits");
    values.resize(std::min(values.size(), kMostFirst));
    return values;
  }
  /// Of the last step, before which `steps` of a window were done and `applied` applied.
  NumericalState state(std::int64_t steps, std::int64_t applied) const {
    if (!trains_) {
      return all_finite(result("logits")) ? NumericalState::live : NumericalState::dead;
    }
    // A step that was skipped may have any loss: what it leaves alone are the weights.
    const bool skips = applied < steps;
    if ((!skips && !all_finite(result("loss"))) || !weights_are_finite(*session_)) {
      return NumericalState::dead;
    }
    return 2 * applied < steps ? NumericalState::skipping : NumericalState::live;
  }

 private:
  std::vector<double> result(std::string_view name) const {
    return doubles(session_->result(0, name));
  }
  void bind(const Asked& asked) {
    const SafetensorsFile file = taken(SafetensorsFile::open(asked.data));
    for (const PlanInput& input : session_->plan(0).inputs) {
      if (input.name == "valid") {
        bind_valid(*session_, asked.batch);
        continue;
      }
      const StoredTensor* stored = file.find(input.name);
      const auto value = stored ? std::optional(taken(file.read(*stored))) : std::nullopt;
      if (!value || value->type() != input.type) {
        give_up(fmt::format("{}: {} {}; needed {}", asked.data, input.name,
                            value ? "is " + text(value->type()) : "is not there",
                            text(input.type)));
      }
      session_->bind(0, input.name, value->view());
    }
  }

  bool trains_;
  States states_;
  std::unique_ptr<Session> session_;
};

/// Seconds of the fastest of some steps, each waited for.
double lead_in(Row& row) {
  const double begin = now();
  double fastest = kLeadSeconds;
  for (int at = 0; at < kLeadSteps || now() < begin + kLeadSeconds; ++at) {
    const double before = now();
    row.step();
    row.wait();
    fastest = at == 0 ? now() - before : std::min(fastest, now() - before);
  }
  return fastest;
}

/// One window of about that many seconds, told in a line; its steps are waited for once, at the
/// end.
void window(Row& row, const Backend& backend, double seconds) {
  const auto steps = std::max<std::int64_t>(1, std::llround(seconds / lead_in(row)));
  const std::int64_t applied = row.applied();
  const double begin = now();
  for (std::int64_t at = 0; at < steps; ++at) {
    row.step();
  }
  row.wait();
  const double end = now();
  const NumericalState state = row.state(steps, row.applied() - applied);
  fmt::print(
      "{{\"steps\": {}, \"begin_s\": {:.6f}, \"end_s\": {:.6f}, \"state\": \"{}\", "
      "\"last\": {}, \"peak_bytes\": {}}}\n",
      steps, begin, end, text(state), json_list(row.numbers()), backend.allocated());
  std::fflush(stdout);
}

/// The first step, and what it gave.
void first(Row& row) {
  row.step();
  row.wait();
  fmt::print("{{\"first\": {}, \"versions\": {{\"halfwatt\": \"{}\"}}}}\n",
             json_list(row.numbers()), kVersion);
  std::fflush(stdout);
}

void answer(const std::string& line, Row& row, const Backend& backend) {
  constexpr double kMostSeconds = 3600;
  std::istringstream words(line);
  std::string word;
  std::string rest;
  double seconds = 0;
  if (line == "first") {
    first(row);
  } else if (words >> word >> seconds && !(words >> rest) && word == "window" && seconds > 0 &&
             seconds <= kMostSeconds) {
    window(row, backend, seconds);
  } else {
    give_up(fmt::format("\"{}\": needed first, or window SECONDS, of more than 0 up to 3600",
                        line));
  }
}

void serve(const std::vector<std::string>& words) {
  const Asked asked = read(words);
  const auto backend = taken(open_backend(asked.device, 0, false));
  Row row(asked, *backend);
  for (std::string line; std::getline(std::cin, line);) {
    answer(line, row, *backend);
  }
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) { halfwatt::serve({argv + 1, argv + argc}); }

#include "cli/train_teller.h"

#include <fmt/format.h>

#include <iostream>

#include "base/remark.h"

namespace halfwatt {
namespace {

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

// What matters most comes first, as a narrow terminal has no room for the rest; and each number
// has its width, so that they stand still. What nobody knows is not there.
std::string words_of(const StepReport& report, const StepCost& cost) {
  std::string words = fmt::format("{}  loss {:.4f}", text(report.state), report.loss);
  if (cost.images_per_second && cost.waited_share) {
    words += fmt::format("  {:>4.0f} images/s  data {:>3.0f} %", *cost.images_per_second,
                         100 * *cost.waited_share);
  }
  words += fmt::format("  lr {:.2e}", report.rate);
  if (report.scale) {
    words += fmt::format("  scale {:g}", *report.scale);
  }
  if (cost.power && cost.per_image) {
    words += fmt::format("  {:>3.0f} W  {:.3f} J/image", cost.power->value(),
                         cost.per_image->value());
  }
  return words;
}

}  // namespace

TrainTeller::TrainTeller(const TrainRequest& request, TrainingLog& log, const Clock& clock)
    : request_(&request),
      log_(&log),
      clock_(&clock),
      line_(clock, std::cerr, stderr_progress_style()),
      started_(clock.now()) {}

void TrainTeller::tell(const StepEvent& event) {
  const StepCost cost = log_->add(event);
  tell(event.bad);
  for (const std::string& warning : event.report.warnings) {
    say(warning);
  }
  if (request_->json) {
    std::cout << metrics_line(event) << std::flush;
  } else {
    show(event, cost);
  }
}

void TrainTeller::tell(const EvaluationEvent& event) {
  log_->add(event);
  tell(event.bad);
  if (request_->json) {
    std::cout << metrics_line(event) << std::flush;
    return;
  }
  const Evaluation& all = event.evaluation;
  line_.clear();
  std::cout << fmt::format(
                   "epoch {:>3}  top-1 {:.2f} % ({} of {})  top-5 {:.2f} %  loss {:.4f}\n",
                   event.epoch + 1, share(all.right, all.images), all.right, all.images,
                   share(all.right_of_5, all.images), all.loss)
            << std::flush;
}

void TrainTeller::show(const StepEvent& event, const StepCost& cost) {
  const auto done = static_cast<double>(event.epoch * event.steps + event.step);
  const auto total = static_cast<double>(request_->epochs * event.steps);
  line_.update({done, total, words_of(event.report, cost), left(done, total)});
}

// By the steps of this process: those before a resume took none of its time.
Seconds TrainTeller::left(double done, double total) {
  before_ = before_ < 0 ? done - 1 : before_;
  return (clock_->now() - started_) * ((total - done) / (done - before_));
}

void TrainTeller::say(const std::string& text) {
  line_.clear();
  remark(text);
}

void TrainTeller::tell(const std::vector<BadImage>& bad) {
  for (const BadImage& each : bad) {
    if (named_.insert(each.message).second) {
      say(fmt::format("left out: {}", each.message));
    }
  }
}

}  // namespace halfwatt

#include "measure/process_workload.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace halfwatt {
namespace {

constexpr int kMostFailures = 3;
constexpr Seconds kLook{0.02};

double steps_of(const std::optional<ProgressReading>& reading) {
  return reading ? reading->steps : 0;
}

}  // namespace

ProcessWorkload::ProcessWorkload(ProcessOptions options, Progress progress, Clock& clock)
    : options_(std::move(options)),
      clock_(&clock),
      info_{options_.name, options_.labels,
            options_.power_only ? std::string(kSecondOfRunning) : options_.unit, 1},
      progress_(std::move(progress)) {}

ProcessWorkload::~ProcessWorkload() { stop(); }

std::vector<Knob> ProcessWorkload::knobs() const {
  std::vector<Knob> all;
  for (const KnobValues& each : options_.knobs) {
    all.push_back(each.knob);
  }
  return all;
}

Result<void> ProcessWorkload::apply(const Setting& setting) {
  if (failures_ >= kMostFailures) {
    return *last_failure_;
  }
  if (job_) {
    failures_ = 0;  // it ran well until here
  }
  Result<std::vector<std::string>> words = options_.command.fill(setting);
  if (!words) {
    return words.error();
  }
  if (options_.items) {
    const Result<double> items = options_.items->value(setting);
    if (!items) {
      return items.error();
    }
    info_.items_per_step = *items;
  }
  setting_ = setting;
  stopped_.reset();
  if (job_ && *words != words_) {
    stop();
  }
  words_ = std::move(*words);
  if (too_large_.count(words_) > 0) {
    stopped_ = WindowNote::does_not_fit;
    return {};
  }
  if (!job_) {
    if (const Result<void> launched = launch(); !launched) {
      return launched.error();
    }
    if (const Result<void> begun = wait_for_step(); !begun) {
      return begun.error();
    }
  }
  const std::lock_guard lock(mutex_);
  progress_.window_begins();
  at_window_ = progress_.latest();
  return {};
}

Result<void> ProcessWorkload::launch() {
  JobOptions how;
  how.words = words_;
  how.output = options_.output;
  how.ends_with_us = true;
  how.on_group = options_.on_group;
  how.on_copy = options_.on_copy;
  {
    const std::lock_guard lock(mutex_);
    if (starts_ > 0) {
      progress_.job_restarts();
    }
    at_start_ = progress_.latest();
    how.environment = progress_.environment();
    how.environment.insert(how.environment.end(), options_.environment.begin(),
                           options_.environment.end());
    tail_.clear();
  }
  Result<std::unique_ptr<Job>> started = Job::start(std::move(how));
  if (!started) {
    return Error{ErrorKind::workload, started.error().message};
  }
  job_ = std::move(*started);
  stepped_at_ = clock_->now();
  if (++starts_ == 1) {
    for (const std::string& remark : job_->remarks()) {
      tell(remark);
    }
  }
  reader_ = std::make_unique<OutputReader>(
      OutputReader::Files{job_->output(), progress_.socket_descriptor()},
      [this](std::string_view bytes) {
        {
          const std::lock_guard lock(mutex_);
          progress_.take_output(bytes, clock_->now());
          tail_.add(bytes);
        }
        if (options_.tee) {
          options_.tee(bytes);
        }
      },
      [this] {
        const std::lock_guard lock(mutex_);
        progress_.latest();
      });
  return {};
}

// A start takes as long as it takes: imports, compilers, the first look at the data. All of it
// belongs to no window.
Result<void> ProcessWorkload::wait_for_step() {
  while (!stopped_) {
    if (options_.interrupted && options_.interrupted()) {
      return Error{ErrorKind::interrupted, "interrupted"};
    }
    if (const Result<void> looked = look_after(); !looked) {
      return looked.error();
    }
    if (options_.power_only || stepped_since_start()) {
      ever_stepped_ = true;
      return {};
    }
    if (clock_->now() - stepped_at_ > options_.patience) {
      if (!ever_stepped_) {
        const Error error = no_step_at_all();
        stop();
        return error;
      }
      hangs();
      return {};
    }
    clock_->sleep_until(clock_->now() + kLook);
  }
  return {};
}

void ProcessWorkload::hangs() {
  std::string why = fmt::format("no step in {:g} s", options_.patience.value());
  if (const auto now = reading(); now && now->fall) {
    why += fmt::format(": its step numbers went back from {:g} to {:g}", now->fall->from,
                       now->fall->to);
  }
  tell(fmt::format("{}: {}", setting_text(), why));
  stop();
  stopped_ = WindowNote::no_progress;
  ++failures_;
  last_failure_ = Error{ErrorKind::workload,
                        fmt::format("{}: hung {} times in a row, at last under {}: {}; "
                                    "--patience SECONDS gives it longer",
                                    options_.name, failures_, setting_text(), why)};
}

Error ProcessWorkload::no_step_at_all() {
  const std::lock_guard lock(mutex_);
  const std::string line = tail_.last_line();
  return {
      ErrorKind::workload,
      fmt::format("{}: no progress seen in {:g} s, and without it there is no speed; needed "
                  "--progress-regex, `halfwatt step`, or --progress none for watts alone (the "
                  "last output was {})",
                  options_.name, options_.patience.value(),
                  line.empty() ? "nothing" : "\"" + line + "\"")};
}

bool ProcessWorkload::stepped_since_start() {
  const std::optional<ProgressReading> now = reading();
  return now && steps_of(now) > steps_of(at_start_);
}

std::optional<ProgressReading> ProcessWorkload::reading() {
  std::optional<ProgressReading> latest;
  std::vector<std::string> remarks;
  {
    const std::lock_guard lock(mutex_);
    latest = progress_.latest();
    remarks = progress_.take_remarks();
  }
  for (const std::string& remark : remarks) {
    tell(remark);
  }
  return latest;
}

void ProcessWorkload::stop_if_asked() {
  if (job_ && options_.stop.asked && options_.stop.asked()) {
    job_->stop();
    options_.stop.stop_us(job_->group());
    job_->go_on();
  }
}

void ProcessWorkload::see_stops() {
  const int stops = options_.stop.times_continued ? options_.stop.times_continued() : 0;
  if (stops != stops_) {
    stops_ = stops;
    stepped_at_ = clock_->now();
  }
}

Result<void> ProcessWorkload::look_after() {
  stop_if_asked();
  see_stops();
  if (!job_) {
    return {};
  }
  const std::optional<JobEnd> end = job_->ended();
  return end ? command_ended(*end) : Result<void>();
}

Result<void> ProcessWorkload::command_ended(const JobEnd& end) {
  reader_.reset();  // with all that it printed
  const bool stepped = options_.power_only || stepped_since_start();
  bool full = end.out_of_memory;
  {
    const std::lock_guard lock(mutex_);
    full = full || (!end.success() && tail_.tells_out_of_memory());
  }
  stop();
  if (end.success() && stepped) {
    failures_ = 0;
    return launch();
  }
  if (end.success()) {
    return failed(text(end) + " and did no step");
  }
  if (full && !options_.knobs.empty()) {
    tell(fmt::format("{}: does not fit: {}", setting_text(), text(end)));
    too_large_.insert(words_);
    stopped_ = WindowNote::does_not_fit;
    return {};
  }
  if (stepped) {
    failures_ = 0;
  }
  return failed(text(end) + (full && !end.out_of_memory ? ", out of memory" : ""));
}

Result<void> ProcessWorkload::failed(const std::string& how) {
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    line = tail_.last_line();
  }
  const std::string why =
      fmt::format("{}{}", how, line.empty() ? "" : "; its last line: \"" + line + "\"");
  tell(fmt::format("{}: {}", setting_text(), why));
  stopped_ = WindowNote::job_failed;
  ++failures_;
  last_failure_ = Error{ErrorKind::workload,
                        fmt::format("{}: failed {} times in a row, at last under {}: {}",
                                    options_.name, failures_, setting_text(), why)};
  return {};
}

WorkDone ProcessWorkload::work_done() {
  if (const Result<void> looked = look_after(); !looked) {
    tell(looked.error().message);
    stopped_ = WindowNote::job_failed;
    ++failures_;
    last_failure_ = looked.error();
  }
  update_items();
  const std::optional<ProgressReading> now = reading();
  if (steps_of(now) != steps_seen_) {
    steps_seen_ = steps_of(now);
    stepped_at_ = clock_->now();
  } else if (job_ && clock_->now() - stepped_at_ > options_.patience) {
    hangs();
  }
  WorkDone done;
  if (options_.power_only) {
    done.count = std::floor(clock_->now().value());
    done.at = Seconds(done.count);
  } else {
    done.count = steps_of(now);
    done.at = now ? now->at : clock_->now();
  }
  done.starts = starts_;
  done.stops = stops_;
  done.stopped = stopped_;
  done.changes = now ? now->changes : 0;
  return done;
}

void ProcessWorkload::update_items() {
  const std::optional<ProgressReading> now = reading();
  if (options_.items || !now || !at_window_ || !now->items || !at_window_->items) {
    return;
  }
  const double steps = now->steps - at_window_->steps;
  const double items = *now->items - *at_window_->items;
  if (steps > 0 && items > 0) {
    info_.items_per_step = items / steps;
  }
}

NumericalState ProcessWorkload::numerical_state() {
  const std::lock_guard lock(mutex_);
  return progress_.numerical_state();
}

ProgressKind ProcessWorkload::progress_kind() {
  const std::lock_guard lock(mutex_);
  return progress_.kind();
}

void ProcessWorkload::stop() {
  if (!job_) {
    return;
  }
  // The reader goes on until the job is gone: a full pipe would keep it from ending.
  if (const Result<void> ended = job_->end(options_.grace); !ended) {
    tell(ended.error().message);
  }
  reader_.reset();
  job_.reset();
}

void ProcessWorkload::tell(const std::string& sentence) const {
  if (options_.tell) {
    options_.tell(sentence);
  }
}

std::string ProcessWorkload::setting_text() const {
  const std::string values = text(setting_);
  return values.empty() ? options_.name : values;
}

}  // namespace halfwatt

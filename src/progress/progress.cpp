#include "progress/progress.h"

#include <array>

#include "base/clock.h"
#include "progress/output_reader.h"
#include "progress/page.h"
#include "progress/step_socket.h"

namespace halfwatt {
namespace {

constexpr std::size_t kSources = 3;
// From the best on; where losses come from goes by the same order.
constexpr std::array<ProgressKind, kSources> kOrder = {ProgressKind::page, ProgressKind::socket,
                                                       ProgressKind::expression};

Result<Preset> preset_of(const ProgressOptions& options) {
  Result<Preset> made = preset(options.preset.value_or("auto"));
  if (made && options.step_regex) {
    Result<Expression> steps =
        Expression::parse("--progress-regex", *options.step_regex, "step");
    if (!steps) {
      return steps.error();
    }
    if (!options.loss_regex && steps->has_loss()) {
      made->losses.clear();
      Result<Expression> losses =
          Expression::parse("--progress-regex", *options.step_regex, "loss");
      if (!losses) {
        return losses.error();
      }
      made->losses.push_back(std::move(*losses));
    }
    made->steps.clear();
    made->steps.push_back(std::move(*steps));
  }
  if (made && options.loss_regex) {
    Result<Expression> losses = Expression::parse("--loss-regex", *options.loss_regex, "loss");
    if (!losses) {
      return losses.error();
    }
    made->losses.clear();
    made->losses.push_back(std::move(*losses));
  }
  return made;
}

}  // namespace

std::string_view text(ProgressKind kind) {
  switch (kind) {
    case ProgressKind::page:
      return "page";
    case ProgressKind::socket:
      return "socket";
    case ProgressKind::expression:
      return "expression";
    case ProgressKind::none:
      break;
  }
  return "none";
}

/// The sources and what was last read from each, in the order of kOrder.
struct Progress::Sources {
  std::unique_ptr<Page> page;
  std::unique_ptr<StepSocket> socket;
  OutputReader output;

  std::array<SourceReading, kSources> now{};
  std::array<LossCounts, kSources> window_began{};
  std::optional<std::size_t> speaker{};  ///< index of the best that has spoken
  ProgressReading last{};
  double steps_before = 0;  ///< counted by other speakers
  double items_before = 0;
  std::uint64_t bar_changes = 0;  ///< of the output, seen so far
  bool has_told_full = false;
  SteadyClock clock{};

  void read() {
    const Seconds time = clock.now();
    now = {page->read(time), socket->read(time), output.reading()};
  }

  /// Steps go on from where they were when another source becomes the speaker.
  void choose_speaker() {
    for (std::size_t i = 0; i < kSources; ++i) {
      if (!now[i].has_spoken) {
        continue;
      }
      if (speaker && speaker != i) {
        steps_before = last.steps - now[i].steps;
        items_before = last.items.value_or(0) - now[i].items.value_or(0);
        ++last.changes;
      }
      speaker = i;
      return;
    }
  }

  void count_changes(bool output_speaks) {
    const std::uint64_t changes = now.back().changes;
    last.changes += output_speaks ? changes - bar_changes : 0;
    bar_changes = changes;
  }

  std::optional<double> last_loss() const {
    for (const SourceReading& source : now) {
      if (source.losses.last) {
        return source.losses.last;
      }
    }
    return std::nullopt;
  }
};

Progress::Progress(std::unique_ptr<Sources> sources) : sources_(std::move(sources)) {}
Progress::Progress(Progress&&) noexcept = default;
Progress& Progress::operator=(Progress&&) noexcept = default;
Progress::~Progress() = default;

Result<Progress> Progress::open(const ProgressOptions& options) {
  Result<Preset> preset = preset_of(options);
  if (!preset) {
    return preset.error();
  }
  Result<std::unique_ptr<Page>> page = Page::create(options.folder);
  if (!page) {
    return page.error();
  }
  Result<std::unique_ptr<StepSocket>> socket = StepSocket::listen(options.folder);
  if (!socket) {
    return socket.error();
  }
  return Progress(std::unique_ptr<Sources>(
      new Sources{std::move(*page), std::move(*socket), OutputReader(std::move(*preset))}));
}

std::vector<std::pair<std::string, std::string>> Progress::environment() const {
  return {{"HALFWATT_PROGRESS", sources_->page->path().string()},
          {"HALFWATT_SOCKET", sources_->socket->path().string()}};
}

void Progress::take_output(std::string_view bytes, Seconds at) {
  sources_->output.take(bytes, at);
}

std::optional<ProgressReading> Progress::latest() {
  Sources& sources = *sources_;
  sources.read();
  sources.choose_speaker();
  if (!sources.speaker) {
    return std::nullopt;
  }
  const SourceReading& speaker = sources.now[*sources.speaker];
  ProgressReading& last = sources.last;
  last.steps = sources.steps_before + speaker.steps;
  last.at = speaker.at;
  last.items.reset();
  if (speaker.items) {
    last.items = sources.items_before + *speaker.items;
  }
  last.loss = sources.last_loss();
  last.fall = speaker.fall;
  sources.count_changes(kOrder[*sources.speaker] == ProgressKind::expression);
  return last;
}

ProgressKind Progress::kind() const {
  return sources_->speaker ? kOrder[*sources_->speaker] : ProgressKind::none;
}

NumericalState Progress::numerical_state() {
  sources_->read();
  NumericalState best = NumericalState::unknown;
  for (std::size_t i = 0; i < kSources; ++i) {
    const NumericalState state =
        state_between(sources_->window_began[i], sources_->now[i].losses);
    if (state == NumericalState::dead) {
      return state;  // whoever saw it, it was there
    }
    best = best == NumericalState::unknown ? state : best;
  }
  return best;
}

void Progress::window_begins() {
  sources_->read();
  for (std::size_t i = 0; i < kSources; ++i) {
    sources_->window_began[i] = sources_->now[i].losses;
  }
}

void Progress::job_restarts() {
  latest();
  sources_->page->restart();
  sources_->socket->restart();
  sources_->output.restart(sources_->clock.now());
  window_begins();
}

int Progress::socket_descriptor() const { return sources_->socket->descriptor(); }

std::vector<std::string> Progress::take_remarks() {
  std::vector<std::string> remarks;
  if (std::string remark = sources_->socket->take_remark(); !remark.empty()) {
    remarks.push_back(std::move(remark));
  }
  if (!sources_->has_told_full && sources_->page->is_full()) {
    sources_->has_told_full = true;
    remarks.emplace_back(
        "HALFWATT_PROGRESS: all 127 slots of the page are taken; steps of further processes "
        "are not counted");
  }
  return remarks;
}

}  // namespace halfwatt

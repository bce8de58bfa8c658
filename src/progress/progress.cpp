#include "progress/progress.h"

namespace halfwatt {

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

struct Progress::Sources {};

Progress::Progress(std::unique_ptr<Sources> sources) : sources_(std::move(sources)) {}
Progress::Progress(Progress&&) noexcept = default;
Progress& Progress::operator=(Progress&&) noexcept = default;
Progress::~Progress() = default;

Result<Progress> Progress::open(const ProgressOptions&) {
  return Progress(std::make_unique<Sources>());
}

std::vector<std::pair<std::string, std::string>> Progress::environment() const { return {}; }
void Progress::take_output(std::string_view, Seconds) {}
std::optional<ProgressReading> Progress::latest() { return std::nullopt; }
ProgressKind Progress::kind() const { return ProgressKind::none; }
NumericalState Progress::numerical_state() { return NumericalState::unknown; }
void Progress::window_begins() {}
void Progress::job_restarts() {}
int Progress::socket_descriptor() const { return -1; }
std::vector<std::string> Progress::take_remarks() { return {}; }

}  // namespace halfwatt

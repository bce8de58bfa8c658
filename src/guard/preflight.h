#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/nvml_library.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// What one card says before a job starts on it.
struct CardFacts {
  std::string card;                 ///< `GPU-<uuid>`
  bool sliced = false;              ///< MIG is on
  std::optional<LimitState> limit;  ///< nullopt: it tells none
  /// Processes that compute on it now, in the driver's numbers: before the job starts all of
  /// them are others'. nullopt where the driver does not tell.
  std::optional<std::vector<pid_t>> processes;
  bool processes_hidden = false;  ///< a pid namespace: there may be more than those
};

/// What is wanted of the cards.
struct PreflightTerms {
  bool limits = true;   ///< they are set, and not only measured
  bool shared = false;  ///< --shared: others on a card are accepted
};

/// Whether a job may start, and what its user should know first: one sentence each, where
/// several cards share one they are named together. Errors: MIG is on and limits are wanted,
/// or others compute on a card and nobody said that this is fine.
Result<std::vector<std::string>> preflight(const std::vector<CardFacts>& cards,
                                           const PreflightTerms& terms);

/// Asks the cards with these UUIDs; `root` is where /proc is looked for. Errors: one is not
/// there, or lost.
Result<std::vector<CardFacts>> card_facts(const std::shared_ptr<const NvmlLibrary>& library,
                                          const std::vector<std::string>& cards,
                                          const std::filesystem::path& root = "/");

}  // namespace halfwatt

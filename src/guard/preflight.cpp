#include "guard/preflight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "device/nvml_processes.h"
#include "guard/limit_bounds.h"
#include "guard/nvml_limit.h"

namespace halfwatt {
namespace {

/// Sentences in the order in which they came, each with the cards that it is about.
class Sentences {
 public:
  void add(const std::string& card, const std::string& sentence) {
    const auto known =
        std::find_if(about_.begin(), about_.end(),
                     [&sentence](const About& each) { return each.sentence == sentence; });
    if (known != about_.end()) {
      known->cards.push_back(card);
    } else {
      about_.push_back({sentence, {card}});
    }
  }
  /// "GPU-a, GPU-b: sentence"; of all of many cards "all 8 cards: sentence".
  std::vector<std::string> lines(std::size_t all) const {
    constexpr std::size_t kMostNames = 2;
    std::vector<std::string> lines;
    for (const About& each : about_) {
      const bool is_all = each.cards.size() == all && all > kMostNames;
      lines.push_back(fmt::format("{}: {}",
                                  is_all ? fmt::format("all {} cards", all)
                                         : fmt::format("{}", fmt::join(each.cards, ", ")),
                                  each.sentence));
    }
    return lines;
  }

 private:
  struct About {
    std::string sentence;
    std::vector<std::string> cards;
  };
  std::vector<About> about_;
};

std::string processes_text(const std::vector<pid_t>& processes) {
  return processes.size() == 1
             ? fmt::format("process {} computes", processes.front())
             : fmt::format("processes {} compute", fmt::join(processes, ", "));
}

void remark_on_processes(const CardFacts& facts,
                         const PreflightTerms& terms,
                         Sentences& sentences) {
  if (!facts.processes || (facts.processes->empty() && facts.processes_hidden)) {
    sentences.add(
        facts.card,
        fmt::format("whether others compute on it cannot be known: {}; what they draw would "
                    "count as the command's",
                    facts.processes ? "a pid namespace hides processes"
                                    : "the driver does not list processes"));
  } else if (!facts.processes->empty()) {
    sentences.add(facts.card,
                  fmt::format("{} on it, too: {}what it draws counts as the command's",
                              processes_text(*facts.processes),
                              terms.limits ? "the limit holds for all of it, and " : ""));
  }
}

void remark_on_limit(const CardFacts& facts,
                     const PreflightTerms& terms,
                     Sentences& sentences) {
  if (!facts.limit) {
    return;
  }
  const LimitState& limit = *facts.limit;
  if (terms.limits && limit.persistence == false) {
    sentences.add(facts.card,
                  "persistence mode is off: the driver drops a limit with its last user; "
                  "halfwatt keeps the card open until the end (nvidia-smi -pm 1)");
  }
  if (limit.enforced && *limit.enforced < limit.requested &&
      !same_limit(*limit.enforced, limit.requested)) {
    sentences.add(facts.card,
                  fmt::format("{:g} W are requested and {:g} W are enforced: something else "
                              "caps the card{}",
                              limit.requested.value(), limit.enforced->value(),
                              terms.limits ? ", and higher limits would do nothing" : ""));
  }
}

Result<CardFacts> facts_of(const std::shared_ptr<const NvmlLibrary>& library,
                           const std::string& card,
                           bool sees_all) {
  const Result<nvml::DeviceHandle> handle = library->handle(card);
  if (!handle) {
    return handle.error();
  }
  Result<std::unique_ptr<LimitControl>> control = NvmlLimit::open(library, card);
  if (!control) {
    return control.error();
  }
  CardFacts facts;
  facts.card = card;
  if (const Result<LimitState> limit = (*control)->look(); limit) {
    facts.limit = *limit;
  }
  const nvml::Calls& calls = library->calls();
  std::uint32_t now = 0;
  std::uint32_t later = 0;
  facts.sliced = calls.mig_mode != nullptr &&
                 calls.mig_mode(*handle, &now, &later) == nvml::kSuccess && now != 0;
  bool lost = false;
  if (auto processes = read_processes(calls, *handle, lost)) {
    std::erase(processes->pids, ::getpid());
    facts.processes = std::move(processes->pids);
    facts.processes_hidden = !sees_all || !processes->whole;
  }
  if (lost) {
    return Error{ErrorKind::device, fmt::format("{}: {}", card, nvml_text(nvml::kGpuIsLost))};
  }
  return facts;
}

}  // namespace

Result<std::vector<std::string>> preflight(const std::vector<CardFacts>& cards,
                                           const PreflightTerms& terms) {
  Sentences sentences;
  for (const CardFacts& facts : cards) {
    if (facts.sliced && terms.limits) {
      return sliced_error(facts.card);
    }
    if (facts.processes && !facts.processes->empty() && !terms.shared) {
      return Error{ErrorKind::device,
                   fmt::format("{}: {} on it; end {}, or accept it with --shared", facts.card,
                               processes_text(*facts.processes),
                               facts.processes->size() == 1 ? "it" : "them")};
    }
    if (facts.sliced) {
      sentences.add(facts.card, "MIG is on: its watts and joules are those of all slices");
    }
    remark_on_processes(facts, terms, sentences);
    remark_on_limit(facts, terms, sentences);
  }
  return sentences.lines(cards.size());
}

Result<std::vector<CardFacts>> card_facts(const std::shared_ptr<const NvmlLibrary>& library,
                                          const std::vector<std::string>& cards,
                                          const std::filesystem::path& root) {
  const bool sees_all = sees_all_processes(root);
  std::vector<CardFacts> all;
  for (const std::string& card : cards) {
    Result<CardFacts> facts = facts_of(library, card, sees_all);
    if (!facts) {
      return facts.error();
    }
    all.push_back(std::move(*facts));
  }
  return all;
}

}  // namespace halfwatt

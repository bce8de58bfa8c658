#include "cli/limit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "cli/job_device.h"
#include "cli/output.h"
#include "device/devices.h"
#include "guard/controls.h"
#include "guard/lasting_limit.h"

namespace halfwatt {
namespace {

constexpr std::string_view kUnit = "halfwatt-limit.service";

Result<std::optional<Watts>> read_limit(const std::string& text) {
  if (text == "default") {
    return std::optional<Watts>();
  }
  double watts = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, watts);
  if (error != std::errc() || stopped != end || !(watts > 0)) {
    return bad_input(fmt::format("limit {}: needed watts or the word default", text));
  }
  return std::optional(Watts(watts));
}

// All cards to look at; to change one it has to be named, or the only one.
Result<std::vector<std::string>> chosen_cards(const Invocation& invocation, bool changes) {
  const DeviceList list = DeviceList::look();
  const auto given = invocation.get("--device");
  if (!given && changes && list.cards().size() > 1) {
    return bad_input(fmt::format("limit: there are {} cards; --device LIST says which, or all",
                                 list.cards().size()));
  }
  std::vector<std::string> cards;
  if (!given && !list.cards().empty()) {
    for (const NvmlEntry& card : list.cards()) {
      if (!card.trouble) {
        cards.push_back(card.uuid);
      }
    }
    return cards;
  }
  const auto selected = list.select(given.value_or("gpu:0"));
  if (!selected) {
    return selected.error();
  }
  for (const FoundDevice& device : *selected) {
    if (device.id.kind == DeviceId::Kind::gpu_uuid) {
      cards.push_back(device.id.name);
    } else if (given != "all") {
      return bad_input(
          fmt::format("limit --device {}: has no power limit; needed a GPU", device.id.text()));
    }
  }
  return cards;
}

std::string or_unknown(const std::optional<Watts>& watts) {
  return watts ? fmt::format("{:g} W", watts->value()) : "unknown";
}

Result<void> show_limits(const std::vector<std::string>& cards) {
  LimitControls controls;
  for (const std::string& card : cards) {
    const auto control = controls.open(card);
    if (!control) {
      return control.error();
    }
    const auto state = (*control)->look();
    if (!state) {
      return state.error();
    }
    std::string line = fmt::format("{}: {:g} W", card, state->requested.value());
    if (state->enforced && !same_limit(*state->enforced, state->requested)) {
      line += fmt::format(" ({} enforced)", or_unknown(state->enforced));
    }
    if (state->range) {
      line += fmt::format("; takes {:g}-{:g} W, default {}", state->range->min.value(),
                          state->range->max.value(), or_unknown(state->range->preset));
    }
    line += state->sliced ? "; MIG is on: no limit is set here" : "";
    if (Result<void> done = print(line + "\n"); !done) {
      return done;
    }
  }
  return {};
}

Result<void> change_limits(const Invocation& invocation,
                           const std::vector<std::string>& cards,
                           const std::optional<Watts>& limit,
                           const GuardianProcess& guardian) {
  std::vector<LastingLimit> wanted;
  wanted.reserve(cards.size());
  for (const std::string& card : cards) {
    wanted.push_back({card, limit});
  }
  const auto changes = ask_for_lasting(guardian, wanted, invocation.get("--state-dir"));
  if (!changes) {
    return changes.error();
  }
  for (const LimitChange& change : *changes) {
    if (change.before.persistence == false) {
      remark(
          fmt::format("{}: persistence mode is off: the driver drops the limit when the "
                      "last program on the card ends; nvidia-smi -pm 1 turns it on",
                      change.card));
    }
    auto done = print(fmt::format("{}: {:g} W, was {:g} W\n", change.card, change.now.value(),
                                  change.before.requested.value()));
    if (!done) {
      return done;
    }
  }
  return {};
}

std::string this_program() {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return path.empty() ? "halfwatt" : path.string();
}

std::string unit_text(const std::vector<std::string>& cards, const std::string& limit) {
  return fmt::format(
      "# Made by halfwatt limit --boot: sets the power limit when the machine starts.\n"
      "[Unit]\n"
      "Description=GPU power limit of {}\n"
      "After=nvidia-persistenced.service halfwatt-restore.service\n\n"
      "[Service]\n"
      "Type=oneshot\n"
      "ExecStart=\"{}\" limit {} --device {}\n\n"
      "[Install]\n"
      "WantedBy=multi-user.target\n",
      limit == "default" ? "the vendor" : limit + " W", this_program(), limit,
      fmt::join(cards, ","));
}

Result<void> install_unit(const std::string& text) {
  const std::filesystem::path folder = usual_places().root / "etc/systemd/system";
  const std::filesystem::path unit = folder / kUnit;
  std::error_code why;
  std::filesystem::create_directories(folder / "multi-user.target.wants", why);
  std::ofstream out(unit);
  out << text;
  out.close();
  if (why || !out) {
    return Error{ErrorKind::device,
                 fmt::format("{}: cannot be written; run it by sudo, or put there what --boot "
                             "prints",
                             unit.string())};
  }
  // What `systemctl enable` does; systemd reads it at the next start.
  const std::filesystem::path link = folder / "multi-user.target.wants" / kUnit;
  std::filesystem::remove(link, why);
  std::filesystem::create_symlink(std::filesystem::path("..") / kUnit, link, why);
  if (why) {
    return Error{ErrorKind::device, fmt::format("{}: {}", link.string(), why.message())};
  }
  return print(
      fmt::format("{} sets the limit from the next start on; systemctl disable {} "
                  "ends that\n",
                  unit.string(), kUnit));
}

Result<void> run(const Invocation& invocation) {
  const auto& words = invocation.arguments();
  if (words.size() > 1) {
    return bad_input(fmt::format("limit: one limit is needed, {} are given", words.size()));
  }
  const bool boot = invocation.has("--boot");
  if ((boot && words.empty()) || (invocation.has("--install") && !boot)) {
    return bad_input("limit: --boot needs WATTS, and --install needs --boot");
  }
  const auto limit = words.empty() ? std::optional<Watts>() : read_limit(words.front());
  if (!limit) {
    return limit.error();
  }
  const bool changes = !words.empty() && !boot;
  Result<GuardianProcess> guardian =
      changes ? call_guardian(invocation, std::nullopt) : GuardianProcess();
  if (!guardian) {
    return guardian.error();
  }
  const auto cards = chosen_cards(invocation, !words.empty());
  if (!cards) {
    return cards.error();
  }
  if (words.empty()) {
    return show_limits(*cards);
  }
  if (changes) {
    return change_limits(invocation, *cards, *limit, *guardian);
  }
  const std::string unit = unit_text(*cards, words.front());
  return invocation.has("--install") ? install_unit(unit) : print(unit);
}

}  // namespace

Command limit_command() {
  Command command;
  command.name = "limit";
  command.summary = "show a card's power limit, or set one and leave it";
  command.description =
      "Without a number it shows what is set, what the card takes and what it ships with. With "
      "WATTS, or the word default, it sets the limit, reads it back and leaves it: for the "
      "answer that tune gave. A card that a halfwatt holds is refused.\n\n"
      "A limit lasts until the driver is unloaded or the machine restarts. --boot prints a "
      "systemd unit that sets it at every start, and changes nothing; with --install it puts "
      "the unit in its place.";
  command.arguments = "[WATTS|default]";
  command.options = {
      {"--device", "LIST", "which cards: gpu:0, GPU-<uuid>, a PCI id, or all"},
      {"--boot", "", "print the unit that sets the limit at every start"},
      {"--install", "", "with --boot: install the unit"},
      {"--state-dir", "DIR", "where locks lie if /run/lock cannot hold them"},
  };
  command.examples = {{"halfwatt limit", "what is set"},
                      {"sudo halfwatt limit 280 --device gpu:0", "set 280 W"},
                      {"sudo halfwatt limit 280 --boot --install", "and at every start"}};
  command.run = run;
  return command;
}

}  // namespace halfwatt

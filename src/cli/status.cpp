#include "cli/status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "guard/leftovers.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::optional<Watts>& watts) {
  return watts ? Json(watts->value()) : Json(nullptr);
}

Json to_json(const KnownCard& card) {
  Json json;
  json["device"] = card.card;
  json["held"] = card.holder.has_value();
  json["pid"] = card.holder ? Json(card.holder->pid) : Json(nullptr);
  json["command"] = card.holder ? Json(card.holder->command) : Json(nullptr);
  json["since"] = card.holder ? Json(card.holder->since) : Json(nullptr);
  json["found_w"] = to_json(card.entry ? std::optional(card.entry->found) : std::nullopt);
  json["set_w"] = to_json(card.entry ? card.entry->intent : std::nullopt);
  return json;
}

std::string line_of(const KnownCard& card) {
  std::string line = card.card + ": ";
  line += card.holder ? fmt::format("held by process {} since {} ({})", card.holder->pid,
                                    card.holder->since, card.holder->command)
                      : "nobody holds it";
  if (card.entry) {
    line += fmt::format("; found at {:g} W", card.entry->found.value());
    if (card.entry->intent) {
      line += fmt::format(", set to {:g} W", card.entry->intent->value());
    }
  }
  if (card.unreadable) {
    line += "; " + card.unreadable->message;
  } else if (!card.holder) {
    line += "; halfwatt restore puts it back";
  }
  return line + "\n";
}

Result<void> run(const Invocation& invocation) {
  const std::vector<KnownCard> cards = known_cards(invocation.get("--state-dir"));
  if (invocation.has("--json")) {
    Json list = Json::array();
    for (const KnownCard& card : cards) {
      list.push_back(to_json(card));
    }
    return print(list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  std::string text;
  for (const KnownCard& card : cards) {
    text += line_of(card);
  }
  return print(text.empty() ? "no halfwatt holds a card\n" : text);
}

}  // namespace

Command status_command() {
  Command command;
  command.name = "status";
  command.summary = "who holds which card, since when, and what limit was found";
  command.description =
      "Lists the cards that a halfwatt holds now, and those whose limit is still to be put "
      "back. "
      "Reads files alone: it neither asks the driver nor disturbs anybody.";
  command.options = {
      {"--json", "", "for a script: a list of objects"},
      {"--state-dir", "DIR", "the journal's folder, where halfwatt was given one"},
  };
  command.examples = {{"halfwatt status", "who holds a card"}};
  command.run = run;
  return command;
}

}  // namespace halfwatt

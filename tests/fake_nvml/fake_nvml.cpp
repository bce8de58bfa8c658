#include "fake_nvml/fake_nvml.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "fake_nvml/symbols.h"

namespace halfwatt {

namespace {

using fake_nvml::Event;
using fake_nvml::EventKind;
using fake_nvml::Script;
using fake_nvml::Source;

std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "fake_nvml.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(name + ": no folder for a fake NVML");
  }
  // Programs under test may become another user.
  std::filesystem::permissions(name, std::filesystem::perms{0755});
  return name;
}

Script written(Script script, const std::string& path) {
  script = fake_nvml::completed(std::move(script), path);
  std::ofstream file(path);
  file << fake_nvml::to_text(script);
  if (!file.flush()) {
    throw std::runtime_error(path + ": cannot be written");
  }
  return script;
}

const char* file_of(NvmlVariant variant) {
  switch (variant) {
    case NvmlVariant::modern:
      return "modern/libnvidia-ml.so.1";
    case NvmlVariant::old:
      return "old/libnvidia-ml.so.1";
    case NvmlVariant::ancient:
      return "ancient/libnvidia-ml.so.1";
    case NvmlVariant::no_nvml:
      return "no_nvml/libnvidia-ml.so.1";
  }
  return "";
}

}  // namespace

FakeNvml::FakeNvml() : FakeNvml(cards(1)) {}

FakeNvml::FakeNvml(Script script)
    : folder_(make_folder()),
      script_path_((folder_ / "script.json").string()),
      script_(written(std::move(script), script_path_)),
      state_(script_) {
  for (std::size_t i = 0; i < script_.cards.size(); ++i) {
    histories_.emplace_back(script_.cards[i], state_, i);
  }
}

FakeNvml::~FakeNvml() {
  if (entered_) {
    unsetenv("HALFWATT_NVML");
    unsetenv("HALFWATT_FAKE_NVML");
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Script FakeNvml::cards(std::size_t count) {
  Script script;
  script.cards.resize(count);
  return script;
}

std::string FakeNvml::library(NvmlVariant variant) {
  return std::string(HALFWATT_FAKE_NVML_FOLDER) + "/" + file_of(variant);
}

std::vector<std::string> FakeNvml::environment(NvmlVariant variant) const {
  return {"HALFWATT_NVML=" + library(variant), "HALFWATT_FAKE_NVML=" + script_path_};
}

void FakeNvml::enter_environment(NvmlVariant variant) {
  setenv("HALFWATT_NVML", library(variant).c_str(), 1);
  setenv("HALFWATT_FAKE_NVML", script_path_.c_str(), 1);
  entered_ = true;
}

fake_nvml::Span FakeNvml::span(std::size_t card) {
  const std::int64_t now_ns = state_.now_ns();
  histories_.at(card).catch_up(now_ns);
  return histories_.at(card).at(now_ns);
}

std::uint32_t FakeNvml::requested_mw(std::size_t card) { return span(card).requested_mw; }

std::uint32_t FakeNvml::enforced_mw(std::size_t card) { return span(card).enforced_mw(); }

bool FakeNvml::persistence(std::size_t card) { return span(card).persistence != 0; }

Joules FakeNvml::drawn(std::size_t card) { return Joules(span(card).energy_mj / 1000); }

std::vector<Event> FakeNvml::events(std::size_t card) {
  (void)span(card);
  return histories_.at(card).events();
}

std::vector<LimitWrite> FakeNvml::writes(std::size_t card) {
  const std::int64_t began_ns = script_.virtual_clock ? 0 : state_.began_ns();
  std::vector<LimitWrite> all;
  for (const Event& event : events(card)) {
    if (event.kind == EventKind::limit) {
      const bool has_effect = event.has_effect != 0;
      all.push_back({began_ns + event.time_ns, event.pid, event.source, event.value,
                     event.result == 0,
                     has_effect ? std::optional(event.in_force) : std::nullopt});
    }
  }
  return all;
}

std::size_t FakeNvml::overwritten_foreign(std::size_t card) {
  std::size_t overwritten = 0;
  bool is_foreign = false;
  for (const LimitWrite& write : writes(card)) {
    if (write.in_force_mw) {
      const bool by_program = write.source == Source::call;
      overwritten += by_program && is_foreign ? 1 : 0;
      is_foreign = !by_program;
    }
  }
  return overwritten;
}

std::uint64_t FakeNvml::calls(std::string_view symbol, std::optional<std::size_t> card) const {
  const auto* const at =
      std::find(fake_nvml::kSymbols.begin(), fake_nvml::kSymbols.end(), symbol);
  if (at == fake_nvml::kSymbols.end()) {
    throw std::runtime_error("the fake has no " + std::string(symbol));
  }
  return state_.calls(card, static_cast<std::size_t>(at - fake_nvml::kSymbols.begin()));
}

void FakeNvml::set_requested(std::uint32_t limit_mw, std::size_t card) {
  fake_nvml::Happening happening;
  happening.limit_mw = limit_mw;
  happen(happening, card);
}

void FakeNvml::set_demand(Watts demand, std::size_t card) {
  fake_nvml::Happening happening;
  happening.demand_mw = static_cast<std::uint32_t>(std::lround(demand.value() * 1000));
  happen(happening, card);
}

void FakeNvml::happen(const fake_nvml::Happening& happening, std::size_t card) {
  for (Event event : fake_nvml::events_of(happening)) {
    event.source = Source::test;
    histories_.at(card).append(event);
  }
}

void FakeNvml::set_processes(const std::vector<fake_nvml::Process>& processes,
                             std::size_t card) {
  std::vector<fake_nvml::SharedProcess> list;
  for (const fake_nvml::Process& process : processes) {
    list.push_back(fake_nvml::shared(process));
  }
  state_.set_processes(card, list);
}

void FakeNvml::advance(Seconds step) {
  if (!script_.virtual_clock) {
    throw std::runtime_error("advance() needs a script with virtual_clock");
  }
  state_.advance_ns(std::llround(step.value() * 1e9));
}

}  // namespace halfwatt

#include "cli/job_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/chosen_cards.h"
#include "cli/output.h"
#include "device/card_group.h"
#include "guard/controls.h"
#include "guard/preflight.h"

namespace halfwatt {
namespace {

// A card of each user's own, in a folder that nobody else can write to.
std::filesystem::path duty_file(const Invocation& invocation) {
  if (const auto folder = invocation.get("--state-dir")) {
    return std::filesystem::absolute(*folder) / "sim-duty.limit";
  }
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path folder =
      runtime != nullptr && *runtime == '/'
          ? std::filesystem::path(runtime) / "halfwatt"
          : std::filesystem::temp_directory_path() / fmt::format("halfwatt-{}", ::getuid());
  return folder / "sim-duty.limit";
}

Result<JobDevices> open_duty(const Invocation& invocation, DeviceId id, const Clock& clock) {
  std::error_code failed;
  std::filesystem::path path = duty_file(invocation);
  JobDevices devices;
  if (invocation.has("--dry-run") && !std::filesystem::exists(path, failed)) {
    Result<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::make();
    if (!folder) {
      return folder.error();
    }
    devices.folder = std::move(*folder);
    path = std::filesystem::path(devices.folder->path()) / path.filename();
  }
  if (std::filesystem::create_directories(path.parent_path(), failed)) {
    std::filesystem::permissions(path.parent_path(), std::filesystem::perms::owner_all, failed);
  }
  if (failed) {
    return Error{ErrorKind::device,
                 fmt::format("sim:duty: {}: {}; --state-dir names another folder",
                             path.parent_path().string(), failed.message())};
  }
  Result<LimitFile> limit = DutyCard::open_limit(path);
  if (!limit) {
    return limit.error();
  }
  devices.ids = {id};
  devices.cards = {"limit-file:" + path.string()};
  devices.duty =
      std::make_unique<DutyCard>(std::move(id), DutyModel{}, std::move(*limit), clock);
  return devices;
}

std::optional<std::string> asked_device(const Invocation& invocation,
                                        const std::optional<std::string>& named) {
  return invocation.has("--device") ? invocation.get("--device") : named;
}

// By the words alone, since nobody has looked for cards yet. What is no device at all is
// refused later, and no reason to ask for a password.
bool may_mean_real_cards(const std::optional<std::string>& asked) {
  if (!real_cards_are_here() || !asked || *asked == "all") {
    return real_cards_are_here();
  }
  for (std::string_view list = *asked;; list.remove_prefix(list.find(',') + 1)) {
    const Result<DeviceId> id = DeviceId::parse(list.substr(0, list.find(',')));
    if (!id || id->kind == DeviceId::Kind::simulated || id->kind == DeviceId::Kind::cpu) {
      return false;
    }
    if (list.find(',') == std::string_view::npos) {
      return true;
    }
  }
}

}  // namespace

bool is_duty(const DeviceId& id) {
  return id.kind == DeviceId::Kind::simulated && id.name == "duty";
}

Result<GuardianProcess> call_guardian(const Invocation& invocation,
                                      const std::optional<std::string>& named) {
  if (invocation.has("--dry-run") || invocation.has("--measure-only")) {
    return GuardianProcess();
  }
  const bool real = may_mean_real_cards(asked_device(invocation, named));
  return GuardianProcess::start(
      GuardianOrder().program,
      real ? GuardianProcess::Reach::real_cards : GuardianProcess::Reach::simulated_cards);
}

Result<JobDevices> find_job_devices(const Invocation& invocation,
                                    const std::optional<std::string>& named,
                                    const Clock& clock) {
  const std::optional<std::string> asked = asked_device(invocation, named);
  if (asked) {
    Result<DeviceId> id = DeviceId::parse(*asked);
    if (id && is_duty(*id)) {
      return open_duty(invocation, std::move(*id), clock);
    }
    if (id && id->kind == DeviceId::Kind::simulated) {
      return Error{ErrorKind::device,
                   fmt::format("--device {}: no command can run on it; needed a card, or "
                               "sim:duty",
                               *asked)};
    }
  }
  JobDevices devices;
  devices.list = std::make_unique<DeviceList>(DeviceList::look());
  Result<ChosenCards> chosen = choose_cards(*devices.list, asked, cuda_environment());
  if (!chosen) {
    return chosen.error();
  }
  for (const std::string& each : chosen->remarks) {
    remark(each);
  }
  devices.ids = std::move(chosen->ids);
  devices.environment = std::move(chosen->environment);
  for (const DeviceId& each : devices.ids) {
    devices.cards.push_back(each.text());
  }
  return devices;
}

Result<void> check_devices(const Invocation& invocation, const JobDevices& devices) {
  if (!devices.list) {
    return {};
  }
  const Result<std::vector<CardFacts>> facts =
      card_facts(devices.list->nvml(), devices.cards, usual_places().root);
  if (!facts) {
    return facts.error();
  }
  const Result<std::vector<std::string>> remarks =
      preflight(*facts, {!invocation.has("--measure-only"), invocation.has("--shared")});
  if (!remarks) {
    return remarks.error();
  }
  for (const std::string& each : *remarks) {
    remark(each);
  }
  return {};
}

Result<std::unique_ptr<Device>> open_cards(const Invocation& invocation,
                                           const JobDevices& devices) {
  std::vector<std::unique_ptr<Device>> cards;
  for (const DeviceId& id : devices.ids) {
    Result<std::unique_ptr<NvmlCard>> card = devices.list->open_card(id);
    if (!card) {
      return card.error();
    }
    if (invocation.has("--shared")) {
      (*card)->accept_others();
    }
    cards.push_back(std::move(*card));
  }
  if (cards.size() == 1) {
    return std::move(cards.front());
  }
  Result<std::unique_ptr<CardGroup>> group =
      CardGroup::make(std::move(cards), invocation.has("--measure-only") ? GroupUse::measured
                                                                         : GroupUse::limited);
  return group ? Result<std::unique_ptr<Device>>(std::move(*group)) : group.error();
}

std::function<void(std::optional<pid_t>)> group_handler(JobDevices& devices,
                                                        GuardianClient* guardian) {
  if (!devices.duty) {
    return {};
  }
  DutyCard* duty = devices.duty.get();
  return [duty, guardian](std::optional<pid_t> group) {
    if (group && guardian != nullptr) {
      if (const Result<void> done = guardian->continue_group(*group); !done) {
        remark(done.error().message);
      }
    }
    duty->set_group(group);
  };
}

Result<std::unique_ptr<GuardianClient>> hold_limits(const Invocation& invocation,
                                                    const JobDevices& devices,
                                                    GuardianProcess guardian) {
  GuardianOrder order;
  order.cards = devices.cards;
  order.state_dir = invocation.get("--state-dir");
  if (const char* folder = std::getenv("HALFWATT_STATE_DIR"); !order.state_dir && folder) {
    order.state_dir = folder;  // in words: sudo keeps no environment for the guardian
  }
  if (invocation.has("--max-limit")) {
    constexpr double kMostWatts = 10000;
    const Result<double> most = invocation.number("--max-limit", 0, 1, kMostWatts);
    if (!most) {
      return most.error();
    }
    order.max_limit = Watts(*most);
  }
  Result<std::unique_ptr<GuardianClient>> client =
      invocation.has("--dry-run")
          ? GuardianClient::look(std::move(order))
          : GuardianClient::start(std::move(order), std::move(guardian));
  if (client) {
    for (const std::string& each : (*client)->remarks()) {
      remark(each);
    }
  }
  return client;
}

std::vector<Option> job_device_options() {
  return {
      {"--device", "LIST",
       "cards that the command uses, separated by commas: gpu:0, GPU-<uuid>; or sim:duty, "
       "which "
       "slows real processes instead of a card; default: what CUDA_VISIBLE_DEVICES shows, or "
       "the one card there is"},
      {"--shared", "", "accept that others use the cards, too; every window is marked"},
      {"--max-limit", "WATTS",
       "the highest limit that may be written, above the one that was found"},
      {"--state-dir", "DIR", "where the limits that were found are noted"},
  };
}

}  // namespace halfwatt

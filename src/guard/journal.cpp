#include "guard/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "guard/descriptor.h"
#include "guard/folders.h"

namespace halfwatt {
namespace {

constexpr std::string_view kEnding = ".json";
constexpr int kVersion = 1;

using Json = nlohmann::json;

Json milliwatts(const std::optional<Watts>& watts) {
  return watts ? Json(std::llround(watts->value() * 1000)) : Json(nullptr);
}

std::string to_text(const JournalEntry& entry) {
  Json json;
  json["journal"] = kVersion;
  json["card"] = entry.card;
  json["boot"] = entry.load.boot;
  json["driver"] = entry.load.driver ? Json(*entry.load.driver) : Json(nullptr);
  json["found_mw"] = milliwatts(entry.found);
  json["found_persistence"] =
      entry.found_persistence ? Json(*entry.found_persistence) : Json(nullptr);
  json["intent_mw"] = milliwatts(entry.intent);
  json["previous_intent_mw"] = milliwatts(entry.previous_intent);
  json["stopped_groups"] = entry.stopped_groups;
  json["read_back"] = entry.read_back;
  return json.dump() + "\n";
}

std::optional<Watts> optional_watts(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(Watts(value.get<double>() / 1000));
}

// Throws what nlohmann throws where a field is missing or of another type.
JournalEntry from_json(const Json& json) {
  JournalEntry entry;
  entry.card = json.at("card").get<std::string>();
  entry.load.boot = json.at("boot").get<std::string>();
  if (const Json& driver = json.at("driver"); !driver.is_null()) {
    entry.load.driver = driver.get<std::string>();
  }
  entry.found = Watts(json.at("found_mw").get<double>() / 1000);
  if (const Json& persistence = json.at("found_persistence"); !persistence.is_null()) {
    entry.found_persistence = persistence.get<bool>();
  }
  entry.intent = optional_watts(json.at("intent_mw"));
  entry.previous_intent = optional_watts(json.at("previous_intent_mw"));
  entry.stopped_groups = json.at("stopped_groups").get<std::vector<int>>();
  entry.read_back = json.value("read_back", true);  // entries of older versions lack it
  return entry;
}

Error journal_error(const std::filesystem::path& folder, const char* what, int why) {
  return {ErrorKind::device,
          fmt::format("journal in {}: {}: {}; no limit is written without it; --state-dir DIR "
                      "names another place",
                      folder.string(), what, std::strerror(why))};
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

LoadId current_load(const std::filesystem::path& root) {
  LoadId load;
  std::ifstream(root / "proc/sys/kernel/random/boot_id") >> load.boot;
  // A module's folder in sysfs is made anew, with a number never used before, when it is
  // loaded.
  struct stat status {};
  if (::stat((root / "sys/module/nvidia").c_str(), &status) == 0) {
    load.driver = fmt::format("{}", status.st_ino);
  }
  return load;
}

Result<void> Journal::write(const JournalEntry& entry) const {
  const Result<Descriptor> folder = open_folder(folder_);
  if (!folder) {
    return folder.error();
  }
  const std::string name = file_name(entry.card) + std::string(kEnding);
  const std::string draft = name + ".new";
  const Descriptor file(::openat(folder->number(), draft.c_str(),
                                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.is_open()) {
    return journal_error(folder_, "cannot write", errno);
  }
  const bool done =
      write_all(file.number(), to_text(entry)) && ::fsync(file.number()) == 0 &&
      ::renameat(folder->number(), draft.c_str(), folder->number(), name.c_str()) == 0 &&
      ::fsync(folder->number()) == 0;
  if (!done) {
    const int why = errno;
    ::unlinkat(folder->number(), draft.c_str(), 0);
    return journal_error(folder_, "cannot write", why);
  }
  return {};
}

Result<std::optional<JournalEntry>> Journal::read(const std::string& card) const {
  const std::filesystem::path path = folder_ / (file_name(card) + std::string(kEnding));
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return std::optional<JournalEntry>();
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  try {
    JournalEntry entry = from_json(Json::parse(text));
    if (entry.card == card) {
      return std::optional(std::move(entry));
    }
  } catch (const Json::exception&) {
    // said below
  }
  return Error{ErrorKind::device,
               fmt::format("{}: not an entry of halfwatt's journal; look at the card's limit, "
                           "then remove the file",
                           path.string())};
}

Result<void> Journal::close(const std::string& card) const {
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name = file_name(card) + std::string(kEnding);
  const bool gone = folder.is_open() &&
                    (::unlinkat(folder.number(), name.c_str(), 0) == 0 || errno == ENOENT);
  if (!gone || ::fsync(folder.number()) != 0) {
    return Error{ErrorKind::device,
                 fmt::format("{}: cannot remove it: {}", (folder_ / name).string(),
                             std::strerror(errno))};
  }
  return {};
}

std::vector<std::string> Journal::cards() const { return cards_in(folder_, kEnding); }

}  // namespace halfwatt

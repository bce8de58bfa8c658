#include "engine/train/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "engine/formats/quoted.h"

namespace halfwatt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLast = "last.safetensors";
constexpr const char* kBest = "best.safetensors";
constexpr std::string_view kStep = "step-";
constexpr std::string_view kEnd = ".safetensors";
// What formats/file.h calls a file in the making, and point() a link.
constexpr std::string_view kMaking = ".halfwatt-";
constexpr std::string_view kNew = ".new";

Error cannot(const fs::path& path, std::string_view what, int why) {
  return bad_input(fmt::format("{}: {}: {}", shown(path), what, std::strerror(why)));
}

std::optional<std::int64_t> attempt_of(const std::string& name) {
  if (!name.starts_with(kStep) || !name.ends_with(kEnd)) {
    return std::nullopt;
  }
  const char* const begin = name.data() + kStep.size();
  const char* const end = name.data() + name.size() - kEnd.size();
  std::int64_t attempt = 0;
  const auto read = std::from_chars(begin, end, attempt);
  return read.ec == std::errc() && read.ptr == end ? std::optional(attempt) : std::nullopt;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

}  // namespace

Result<CheckpointFolder> CheckpointFolder::open(const fs::path& folder, const Rule& rule) {
  std::error_code error;
  fs::create_directories(folder, error);
  FileDescriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.number() < 0) {
    return cannot(folder, "no folder for checkpoints", error ? error.value() : errno);
  }
  // A file system without locks has none of the other training either.
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return bad_input(fmt::format(
        "{}: another training saves its checkpoints there; needed a folder of its own",
        shown(folder)));
  }
  CheckpointFolder opened(folder, rule, std::move(lock));
  opened.sweep();
  if (const auto best = opened.best()) {
    if (const auto position = position_of(*best); position) {
      opened.best_score_ = position->score;
    }
  }
  return opened;
}

void CheckpointFolder::sweep() const {
  for (const std::string& name : names_in(folder_)) {
    if (name.starts_with(kMaking) && name.ends_with(kNew)) {
      std::error_code ignored;
      fs::remove(folder_ / name, ignored);
    }
  }
}

fs::path CheckpointFolder::file_of(std::int64_t attempt) const {
  return folder_ / fmt::format("{}{:08}{}", kStep, attempt, kEnd);
}

std::vector<std::int64_t> CheckpointFolder::attempts() const {
  std::vector<std::int64_t> all;
  for (const std::string& name : names_in(folder_)) {
    if (const auto attempt = attempt_of(name)) {
      all.push_back(*attempt);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<fs::path> CheckpointFolder::target_of(const char* link) const {
  std::error_code error;
  const fs::path name = fs::read_symlink(folder_ / link, error);
  const fs::path file = folder_ / name;
  return !error && fs::is_regular_file(file, error) ? std::optional(file) : std::nullopt;
}

std::optional<fs::path> CheckpointFolder::last() const {
  if (auto file = target_of(kLast)) {
    return file;
  }
  const std::vector<std::int64_t> all = attempts();  // the first save ended before its link
  return all.empty() ? std::nullopt : std::optional(file_of(all.back()));
}

std::optional<fs::path> CheckpointFolder::best() const { return target_of(kBest); }

Result<void> CheckpointFolder::point(const char* link, const fs::path& file) const {
  const fs::path made = folder_ / fmt::format("{}{}{}", kMaking, link, kNew);
  ::unlink(made.c_str());
  if (::symlink(file.filename().c_str(), made.c_str()) != 0 ||
      ::rename(made.c_str(), (folder_ / link).c_str()) != 0) {
    const int why = errno;
    ::unlink(made.c_str());
    return cannot(folder_ / link, "cannot be made to point at the checkpoint", why);
  }
  ::fsync(lock_.number());  // some file systems flush no folders
  return {};
}

void CheckpointFolder::drop_old(std::int64_t attempt) const {
  std::vector<std::int64_t> all = attempts();
  // Later ones are of a life of the training that it did not go on from: not ours to count.
  all.erase(std::upper_bound(all.begin(), all.end(), attempt), all.end());
  const auto kept = static_cast<std::size_t>(std::max(rule_.keep, 1));
  const std::optional<fs::path> best_one = best();
  for (std::size_t at = 0; at + kept < all.size(); ++at) {
    const fs::path file = file_of(all[at]);
    if (!best_one || file.filename() != best_one->filename()) {
      std::error_code ignored;
      fs::remove(file, ignored);
    }
  }
}

Result<void> CheckpointFolder::save(Trainer& trainer, const TrainPosition& position) {
  const fs::path file = file_of(trainer.attempts());
  const std::optional<fs::path> old_best = best();
  const bool is_best = old_best && old_best->filename() == file.filename();
  // The best one is not forgotten to be it where it is saved once more.
  const auto score = position.score || !is_best ? position.score : best_score_;
  if (const auto saved = trainer.save(file, {position.epoch, position.image, score}); !saved) {
    return saved;
  }
  if (score && !std::isnan(*score) && (!best_score_ || *score > *best_score_)) {
    if (const auto pointed = point(kBest, file); !pointed) {
      return pointed;
    }
    best_score_ = score;
  }
  // After the best one: a training killed in between comes by here again.
  if (const auto pointed = point(kLast, file); !pointed) {
    return pointed;
  }
  drop_old(trainer.attempts());
  return {};
}

}  // namespace halfwatt

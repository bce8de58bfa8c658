#include "progress/page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <halfwatt_progress.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>

namespace halfwatt {
namespace {

// A writer needs some 20 ns for a change, so whoever is still at it now was stopped or killed.
constexpr int kTries = 100;
constexpr double kNanosecondsOfSecond = 1e9;

static_assert(sizeof(halfwatt_page_header) == 128);
static_assert(sizeof(halfwatt_page_slot) == 128);
static_assert(sizeof(halfwatt_page) == 16384);

template <class T>
T load(const T& field) {
  T value;
  __atomic_load(&field, &value, __ATOMIC_ACQUIRE);
  return value;
}

/// The fields of a slot as they stand, perhaps in the middle of a change.
halfwatt_page_slot copy_of(const halfwatt_page_slot& slot) {
  halfwatt_page_slot copy{};
  copy.generation = load(slot.generation);
  copy.rank = load(slot.rank);
  copy.flags = load(slot.flags);
  copy.steps = load(slot.steps);
  copy.changed_ns = load(slot.changed_ns);
  copy.items = load(slot.items);
  copy.loss = load(slot.loss);
  copy.losses = load(slot.losses);
  copy.losses_dead = load(slot.losses_dead);
  copy.losses_changed = load(slot.losses_changed);
  return copy;
}

/// One consistent copy, or nullopt if the writer stands in the middle of a change.
std::optional<halfwatt_page_slot> whole_copy_of(const halfwatt_page_slot& slot) {
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = load(slot.sequence);
    const halfwatt_page_slot copy = copy_of(slot);
    if (before % 2 == 0 && before == load(slot.sequence)) {
      return copy;
    }
  }
  return std::nullopt;
}

void add(LossCounts& sum, const LossCounts& more) {
  sum.told += more.told;
  sum.dead += more.dead;
  sum.changed += more.changed;
}

halfwatt_page_header new_header() {
  halfwatt_page_header header{};
  std::memcpy(header.magic, HALFWATT_PAGE_MAGIC, sizeof header.magic);
  header.version = HALFWATT_PAGE_VERSION;
  header.page_bytes = sizeof(halfwatt_page);
  header.header_bytes = sizeof(halfwatt_page_header);
  header.slot_bytes = sizeof(halfwatt_page_slot);
  header.slots = HALFWATT_PAGE_SLOTS;
  header.generation = 1;
  return header;
}

Error cannot_make(const std::filesystem::path& path) {
  return bad_input(fmt::format(
      "{}: cannot make the page of the job's progress: {}; TMPDIR names another folder",
      path.string(), std::strerror(errno)));
}

}  // namespace

/// The mapping of the file.
struct Page::Memory {
  halfwatt_page* page;
  explicit Memory(void* memory) : page(static_cast<halfwatt_page*>(memory)) {}
  ~Memory() { ::munmap(page, sizeof(halfwatt_page)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

Result<std::unique_ptr<Page>> Page::create(const std::filesystem::path& folder) {
  static_assert(kSlots == HALFWATT_PAGE_SLOTS);
  std::filesystem::path path = folder / "progress.page";
  constexpr mode_t kOwnerOnly = 0600;
  const int file =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (file < 0) {
    return cannot_make(path);
  }
  // Allocated now: a full disk is met here and not as a signal in the job.
  errno = ::posix_fallocate(file, 0, sizeof(halfwatt_page));
  void* memory = errno == 0 ? ::mmap(nullptr, sizeof(halfwatt_page), PROT_READ | PROT_WRITE,
                                     MAP_SHARED, file, 0)
                            : MAP_FAILED;
  if (memory == MAP_FAILED) {
    const Error error = cannot_make(path);
    ::close(file);
    ::unlink(path.c_str());
    return error;
  }
  ::close(file);
  auto page = std::make_unique<Memory>(memory);
  page->page->header = new_header();
  return std::unique_ptr<Page>(new Page(std::move(path), std::move(page)));
}

Page::Page(std::filesystem::path path, std::unique_ptr<Memory> memory)
    : path_(std::move(path)), memory_(std::move(memory)) {}

Page::~Page() { ::unlink(path_.c_str()); }

void Page::read_slot(std::size_t index, Seconds now) {
  const auto whole = whole_copy_of(memory_->page->slots[index]);
  if (!whole || whole->generation != generation_) {
    return;
  }
  Slot& slot = slots_[index];
  const auto steps = static_cast<double>(whole->steps);
  if (steps > slot.steps || slot.generation != generation_) {
    slot.steps = steps;
    slot.at =
        std::min(now, Seconds(static_cast<double>(whole->changed_ns) / kNanosecondsOfSecond));
  }
  slot.generation = whole->generation;
  slot.rank = whole->rank;
  slot.has_items = (whole->flags & HALFWATT_SLOT_HAS_ITEMS) != 0 && std::isfinite(whole->items);
  slot.items = std::max(slot.items, slot.has_items ? whole->items : 0);
  slot.losses = {whole->losses, whole->losses_dead, whole->losses_changed, std::nullopt};
  if (whole->losses > 0) {
    slot.losses.last = whole->loss;
  }
}

void Page::add_up() {
  struct Rank {
    double steps = 0;
    Seconds at;
  };
  std::map<std::uint32_t, Rank> ranks;
  std::optional<double> items = carried_.items;
  LossCounts losses = carried_.losses;
  std::optional<std::uint32_t> rank_of_loss;
  for (const Slot& slot : slots_) {
    if (slot.generation != generation_) {
      continue;
    }
    Rank& rank = ranks[slot.rank];
    rank.steps += slot.steps;
    rank.at = std::max(rank.at, slot.at);
    if (slot.has_items) {
      items = items.value_or(0) + slot.items;
    }
    add(losses, slot.losses);
    if (slot.losses.last && (!rank_of_loss || slot.rank < *rank_of_loss)) {
      rank_of_loss = slot.rank;
      losses.last = slot.losses.last;
    }
  }
  reading_.items = items;
  reading_.losses = losses;
  if (ranks.empty()) {
    return;
  }
  const auto by_steps = [](const auto& a, const auto& b) {
    return a.second.steps < b.second.steps;
  };
  const double least = std::min_element(ranks.begin(), ranks.end(), by_steps)->second.steps;
  if (carried_.steps + least <= reading_.steps) {
    return;  // unchanged, or a rank that came later and counts from zero
  }
  reading_.has_spoken = true;
  reading_.steps = carried_.steps + least;
  reading_.at = Seconds(0);
  for (const auto& [id, rank] : ranks) {
    if (rank.steps == least) {  // the last of these made it so many
      reading_.at = std::max(reading_.at, rank.at);
    }
  }
}

SourceReading Page::read(Seconds now) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (load(memory_->page->slots[i].owner) == 0) {
      break;  // slots are taken from the first on
    }
    read_slot(i, now);
  }
  add_up();
  return reading_;
}

void Page::restart() {
  carried_ = reading_;
  carried_.losses.last.reset();
  slots_ = {};
  ++generation_;
  __atomic_store_n(&memory_->page->header.generation, generation_, __ATOMIC_RELEASE);
}

bool Page::is_full() const {
  return std::ranges::none_of(memory_->page->slots, [](const halfwatt_page_slot& slot) {
    return load(slot.owner) == 0;
  });
}

}  // namespace halfwatt

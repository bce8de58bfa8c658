#include "fake_nvml/shared_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "fake_nvml/symbols.h"

namespace halfwatt::fake_nvml {

namespace {

constexpr std::uint64_t kMagic = 0x68770004;     // our own; the last digits count the layouts
constexpr std::size_t kHistoryEvents = 1 << 16;  // pages that nobody touches take no disk
constexpr std::size_t kMostProcesses = 64;
constexpr std::size_t kProcessLists = 32;
constexpr std::size_t kMostClients = 256;

struct ProcessList {
  std::uint32_t count;
  std::array<SharedProcess, kMostProcesses> list;
};

struct SharedCard {
  /// The writer fills a list that nobody has read for long and then names it.
  std::atomic<std::uint32_t> current_list;
  std::array<ProcessList, kProcessLists> lists;
  std::atomic<std::uint32_t> used_events;  ///< places given out, published or not
  std::array<std::atomic<std::uint32_t>, kHistoryEvents> slots;  ///< place + 1; 0: free
  std::array<Event, kHistoryEvents> events;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Closes on every way out.
class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

struct Layout {
  std::uint64_t magic;
  std::uint64_t card_count;
  std::uint64_t symbol_count;
  std::int64_t began_ns;
  std::uint64_t is_virtual;
  std::atomic<std::int64_t> virtual_ns;
  std::atomic<std::uint64_t> armed;
  std::array<std::atomic<std::int32_t>, kMostClients> clients;  ///< process ids; 0: free
  std::atomic<std::uint64_t> had_clients;
  std::array<std::atomic<std::uint64_t>, kSymbols.size()> system_calls;

  // Behind it, one of each for every card.
  struct PerCard {
    std::array<std::atomic<std::uint64_t>, kSymbols.size()> calls;
    SharedCard card;
  };
  PerCard& at(std::size_t card) { return *(reinterpret_cast<PerCard*>(this + 1) + card); }
  static std::size_t bytes(std::size_t cards) {
    return sizeof(Layout) + cards * sizeof(PerCard);
  }
};
static_assert(sizeof(Layout) % alignof(Layout::PerCard) == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace {

void* map(int file, std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    fail("the state cannot be mapped");
  }
  return address;
}

void begin(Layout& layout, const Script& script) {
  layout.magic = kMagic;
  layout.card_count = script.cards.size();
  layout.symbol_count = kSymbols.size();
  layout.is_virtual = script.virtual_clock ? 1 : 0;
  std::uint64_t armed = 0;
  for (std::size_t i = 0; i < script.faults.size(); ++i) {
    armed |= std::uint64_t{script.faults[i].armed ? 1U : 0U} << i;
  }
  layout.armed = armed;
  for (std::size_t i = 0; i < script.cards.size(); ++i) {
    ProcessList& list = layout.at(i).card.lists[0];
    for (const Process& process : script.cards[i].processes) {
      list.list.at(list.count++) = shared(process);
    }
  }
  layout.began_ns = monotonic_ns();
}

/// Makes a whole state under another name and links it in: nobody ever sees half of one, and
/// of two processes that make one, one wins.
void make_if_absent(const Script& script) {
  if (access(script.state.c_str(), F_OK) == 0) {
    return;
  }
  std::string name = script.state + ".XXXXXX";
  const File file(mkostemp(name.data(), O_CLOEXEC));
  const std::size_t bytes = Layout::bytes(script.cards.size());
  // Whoever the tests run as, and whoever they become, writes the same file.
  if (file.number() < 0 || fchmod(file.number(), 0666) != 0 ||
      ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) {
    fail(name);
  }
  void* const address = map(file.number(), bytes);
  begin(*static_cast<Layout*>(address), script);
  munmap(address, bytes);
  const bool linked = link(name.c_str(), script.state.c_str()) == 0 || errno == EEXIST;
  unlink(name.c_str());
  if (!linked) {
    fail(script.state);
  }
}

}  // namespace

SharedProcess shared(const Process& process) {
  return {process.pid, process.kind, process.bytes.value_or(~std::uint64_t{0}),
          process.sm_percent, process.memory_percent};
}

void SharedState::Unmap::operator()(void* address) const { munmap(address, bytes); }

SharedState::SharedState(const Script& script)
    : card_count_(script.cards.size()), mapping_(nullptr, Unmap{0}), layout_(nullptr) {
  make_if_absent(script);
  const File file(open(script.state.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) {
    fail(script.state);
  }
  const std::size_t bytes = Layout::bytes(card_count_);
  if (static_cast<std::size_t>(status.st_size) != bytes) {
    throw std::runtime_error(script.state + " is the state of another script");
  }
  mapping_ = {map(file.number(), bytes), Unmap{bytes}};
  layout_ = static_cast<Layout*>(mapping_.get());
  if (layout_->magic != kMagic || layout_->card_count != card_count_ ||
      layout_->symbol_count != kSymbols.size()) {
    throw std::runtime_error(script.state + " is the state of another script or fake");
  }
}

std::int64_t SharedState::now_ns() const {
  return layout_->is_virtual != 0 ? layout_->virtual_ns.load()
                                  : monotonic_ns() - layout_->began_ns;
}

std::int64_t SharedState::began_ns() const { return layout_->began_ns; }

void SharedState::advance_ns(std::int64_t step_ns) { layout_->virtual_ns += step_ns; }

void SharedState::wait_until_ns(std::int64_t time_ns) const {
  for (std::int64_t left = time_ns - now_ns(); left > 0; left = time_ns - now_ns()) {
    // A virtual clock is moved by another process: look again soon.
    const std::int64_t nap_ns = layout_->is_virtual != 0 ? 1'000'000 : left;
    const timespec nap{nap_ns / 1'000'000'000, nap_ns % 1'000'000'000};
    nanosleep(&nap, nullptr);
  }
}

std::atomic<std::uint64_t>& SharedState::counter(std::optional<std::size_t> card,
                                                 std::size_t symbol) const {
  return card ? layout_->at(*card).calls[symbol] : layout_->system_calls[symbol];
}

std::uint64_t SharedState::count_call(std::optional<std::size_t> card, std::size_t symbol) {
  return ++counter(card, symbol);
}

std::uint64_t SharedState::calls(std::optional<std::size_t> card, std::size_t symbol) const {
  return counter(card, symbol).load();
}

bool SharedState::is_armed(std::size_t fault) const {
  return ((layout_->armed.load() >> fault) & 1) != 0;
}

void SharedState::arm(std::size_t fault, bool armed) {
  const std::uint64_t bit = std::uint64_t{1} << fault;
  if (armed) {
    layout_->armed |= bit;
  } else {
    layout_->armed &= ~bit;
  }
}

const Event* SharedState::event(std::size_t card, std::size_t slot) const {
  SharedCard& shared_card = layout_->at(card).card;
  const std::uint32_t place =
      slot < kHistoryEvents ? shared_card.slots[slot].load(std::memory_order_acquire) : 0;
  return place != 0 ? &shared_card.events[place - 1] : nullptr;
}

bool SharedState::publish(std::size_t card, std::size_t slot, const Event& event) {
  SharedCard& shared_card = layout_->at(card).card;
  const std::uint32_t place = shared_card.used_events++;
  if (place >= kHistoryEvents) {
    throw std::runtime_error("the history of a card is full");
  }
  shared_card.events[place] = event;
  std::uint32_t free = 0;
  return shared_card.slots[slot].compare_exchange_strong(free, place + 1,
                                                         std::memory_order_acq_rel);
}

bool SharedState::was_left() const {
  return layout_->had_clients.load() != 0 &&
         std::none_of(layout_->clients.begin(), layout_->clients.end(), [](const auto& client) {
           const std::int32_t pid = client.load();
           return pid != 0 && (kill(pid, 0) == 0 || errno == EPERM);
         });
}

void SharedState::add_client(std::int32_t pid) {
  layout_->had_clients = 1;
  for (std::atomic<std::int32_t>& client : layout_->clients) {
    std::int32_t holder = client.load();
    const bool is_free = holder == 0 || (kill(holder, 0) != 0 && errno == ESRCH);
    if (is_free && client.compare_exchange_strong(holder, pid)) {
      return;
    }
  }
  throw std::runtime_error("more processes than the fake can hold");
}

void SharedState::remove_client(std::int32_t pid) {
  for (std::atomic<std::int32_t>& client : layout_->clients) {
    std::int32_t holder = pid;
    if (client.compare_exchange_strong(holder, 0)) {
      return;
    }
  }
}

std::vector<SharedProcess> SharedState::processes(std::size_t card) const {
  const SharedCard& shared_card = layout_->at(card).card;
  const ProcessList& list = shared_card.lists[shared_card.current_list.load()];
  return {list.list.begin(), list.list.begin() + list.count};
}

void SharedState::set_processes(std::size_t card, std::span<const SharedProcess> processes) {
  SharedCard& shared_card = layout_->at(card).card;
  const std::uint32_t other = (shared_card.current_list.load() + 1) % kProcessLists;
  ProcessList& list = shared_card.lists[other];
  list.count = 0;
  for (const SharedProcess& process : processes) {
    list.list.at(list.count++) = process;
  }
  shared_card.current_list = other;
}

}  // namespace halfwatt::fake_nvml

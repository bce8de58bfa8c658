#include "progress/step_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace halfwatt {
namespace {

constexpr std::size_t kMostRanks = 4096;
// Messages taken in one go; a flood must not keep the reader from its other work.
constexpr int kMostMessages = 10000;
// A stamp older than this is of another clock (a time namespace), not of a slow reader.
constexpr Seconds kOldestStamp{60};
constexpr int kPatienceMs = 1000;

/// nullopt if the path is too long.
std::optional<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path) {
    return std::nullopt;
  }
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::string printable(std::string_view bytes) {
  constexpr std::size_t kMost = 40;
  std::string text(bytes.substr(0, kMost));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text + (bytes.size() > kMost ? "..." : "");
}

}  // namespace

Result<std::unique_ptr<StepSocket>> StepSocket::listen(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "progress.socket";
  const auto address = address_of(path);
  if (!address) {
    return bad_input(fmt::format(
        "{}: too long for the path of a socket ({} bytes, at most {}); TMPDIR names another "
        "folder",
        path.string(), path.native().size(), sizeof address->sun_path - 1));
  }
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0 || ::bind(descriptor, generic(*address), sizeof *address) != 0) {
    const Error error = bad_input(fmt::format(
        "{}: cannot make the socket of the job's progress: {}; TMPDIR names another folder",
        path.string(), std::strerror(errno)));
    if (descriptor >= 0) {
      ::close(descriptor);
    }
    return error;
  }
  return std::unique_ptr<StepSocket>(new StepSocket(std::move(path), descriptor));
}

StepSocket::StepSocket(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

StepSocket::~StepSocket() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

SourceReading StepSocket::read(Seconds now) {
  std::array<char, kMostBytesOfAStepMessage + 1> bytes;  // one more: too long is seen
  for (int i = 0; i < kMostMessages; ++i) {
    const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (count < 0) {
      break;
    }
    const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
    if (const auto message = parse_step_message(text)) {
      take(*message, now);
    } else {
      remark_on(text);
    }
  }
  return reading_;
}

void StepSocket::remark_on(std::string_view message) {
  if (!std::exchange(has_remarked_, true)) {
    remark_ = fmt::format(
        "HALFWATT_SOCKET: ignored \"{}\" and whatever else is no message; needed a step's "
        "number or +1, then items=N, loss=X, rank=N if known",
        printable(message));
  }
}

void StepSocket::take(const StepMessage& message, Seconds now) {
  if (ranks_.size() >= kMostRanks && ranks_.count(message.rank) == 0) {
    return;
  }
  Rank& rank = ranks_[message.rank];
  const bool has_sane_stamp =
      message.at && *message.at <= now && *message.at >= now - kOldestStamp;
  const Seconds at = has_sane_stamp ? *message.at : now;
  if (message.step) {
    if (rank.numbers.see(*message.step, at)) {
      rank.at = at;
    }
  } else {
    rank.more += 1;
    rank.at = at;
  }
  if (message.items) {
    rank.has_items = true;
    if (message.step) {
      rank.items.see(*message.items, at);
    } else {
      rank.more_items += *message.items;
    }
  }
  if (message.loss) {
    losses_.see(*message.loss, fmt::format("{}", *message.loss));
    reading_.losses = losses_.counts();
  }
  if (!std::exchange(reading_.has_spoken, true)) {
    reading_.at = at;
  }
  add_up();
}

void StepSocket::add_up() {
  const auto steps = [](const Rank& rank) { return rank.numbers.steps() + rank.more; };
  double least = steps(ranks_.begin()->second);
  std::optional<double> items = carried_items_;
  for (const auto& [id, rank] : ranks_) {
    least = std::min(least, steps(rank));
    if (rank.has_items) {
      items = items.value_or(0) + rank.items.steps() + rank.more_items;
    }
  }
  reading_.items = items;
  reading_.fall.reset();
  for (const auto& [id, rank] : ranks_) {
    reading_.fall = reading_.fall ? reading_.fall : rank.numbers.fall();
  }
  if (carried_steps_ + least <= reading_.steps) {
    return;  // unchanged, or a rank that came later
  }
  reading_.steps = carried_steps_ + least;
  reading_.at = Seconds(0);
  for (const auto& [id, rank] : ranks_) {
    if (steps(rank) == least) {
      reading_.at = std::max(reading_.at, rank.at);
    }
  }
}

void StepSocket::restart() {
  // A restarted job may have fewer ranks, so all start at zero again, on top of what there was.
  carried_steps_ = reading_.steps;
  carried_items_ = reading_.items;
  ranks_.clear();
  losses_.restart();
  reading_.losses = losses_.counts();
  reading_.fall.reset();
}

bool tell_step(const std::filesystem::path& path, const StepMessage& message) {
  const auto address = address_of(path);
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0 || !address ||
      ::connect(descriptor, generic(*address), sizeof *address) != 0) {
    ::close(descriptor);
    return false;
  }
  const std::string line = text(message);
  bool told = false;
  while (true) {
    told = ::send(descriptor, line.data(), line.size(), MSG_NOSIGNAL) >= 0;
    pollfd room{descriptor, POLLOUT, 0};
    if (told || errno != EAGAIN || ::poll(&room, 1, kPatienceMs) <= 0) {
      break;
    }
  }
  ::close(descriptor);
  return told;
}

}  // namespace halfwatt

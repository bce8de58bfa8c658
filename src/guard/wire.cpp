#include "guard/wire.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

namespace halfwatt {
namespace {

// 64 cards with the longest of names fit many times.
constexpr std::size_t kLargestPacket = 65536;

constexpr ErrorKind kKinds[] = {ErrorKind::bad_input, ErrorKind::device, ErrorKind::workload,
                                ErrorKind::interrupted, ErrorKind::not_restored};

/// Room for one open file beside a packet.
union FileSpace {
  cmsghdr aligned;
  unsigned char bytes[CMSG_SPACE(sizeof(int))];
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::string word(const std::optional<bool>& flag) { return !flag ? "-" : *flag ? "1" : "0"; }

}  // namespace

Result<void> send_message(int socket, const Message& message, int file) {
  std::string packet;
  for (const std::string& each : message) {
    packet += (&each == &message.front() ? "" : "\n") + each;
  }
  if (packet.size() > kLargestPacket) {
    return bad_input(fmt::format("too many cards or too long names: {} bytes", packet.size()));
  }
  iovec text{packet.data(), packet.size()};
  FileSpace space{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  if (file >= 0) {
    header.msg_control = space.bytes;
    header.msg_controllen = sizeof space.bytes;
    cmsghdr* const added = CMSG_FIRSTHDR(&header);
    added->cmsg_level = SOL_SOCKET;
    added->cmsg_type = SCM_RIGHTS;
    added->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(added), &file, sizeof file);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    return Error{ErrorKind::device,
                 fmt::format("the guardian does not listen: {}", std::strerror(errno))};
  }
  return {};
}

std::optional<Message> receive_message(int socket, Descriptor* file) {
  std::string packet(kLargestPacket, '\0');
  iovec text{packet.data(), packet.size()};
  FileSpace space{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  header.msg_control = space.bytes;
  header.msg_controllen = sizeof space.bytes;
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const cmsghdr* const added = size < 0 ? nullptr : CMSG_FIRSTHDR(&header);
  if (added != nullptr && added->cmsg_level == SOL_SOCKET && added->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(added), sizeof number);
    Descriptor came(number);
    if (file != nullptr) {
      *file = std::move(came);
    }
  }
  if (size <= 0) {
    return std::nullopt;
  }
  return split(std::string_view(packet).substr(0, static_cast<std::size_t>(size)), '\n');
}

Message answer(const Error& error) {
  return {"error", fmt::format("{}", exit_code(error.kind)), error.message};
}

std::optional<Error> error_in(const Message& answer) {
  if (!answer.empty() && answer.front() == "ok") {
    return std::nullopt;
  }
  Error error{ErrorKind::device, "the guardian's answer makes no sense"};
  if (answer.size() >= 3 && answer.front() == "error") {
    for (const ErrorKind kind : kKinds) {
      if (answer[1] == fmt::format("{}", exit_code(kind))) {
        error.kind = kind;
      }
    }
    error.message = answer[2];
  }
  return error;
}

std::string word(const std::optional<Watts>& limit) {
  return limit ? fmt::format("{}", std::llround(limit->value() * 1000)) : "-";
}

std::optional<Watts> watts_in(const std::string& word) {
  unsigned limit_mw = 0;
  const char* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, limit_mw);
  return error == std::errc() && stopped == end ? std::optional(Watts(limit_mw / 1000.0))
                                                : std::nullopt;
}

std::string word(const LimitState& state) {
  const auto min = state.range ? std::optional(state.range->min) : std::nullopt;
  const auto max = state.range ? std::optional(state.range->max) : std::nullopt;
  const auto preset = state.range ? state.range->preset : std::nullopt;
  return fmt::format("{} {} {} {} {} {} {}", word(std::optional(state.requested)),
                     word(state.enforced), word(min), word(max), word(preset),
                     word(state.persistence), state.sliced ? 1 : 0);
}

std::optional<LimitState> state_in(const std::string& word) {
  const std::vector<std::string> parts = split(word, ' ');
  if (parts.size() != 7 || !watts_in(parts[0])) {
    return std::nullopt;
  }
  LimitState state{*watts_in(parts[0]), watts_in(parts[1]), {}, {}, parts[6] == "1"};
  const auto min = watts_in(parts[2]);
  const auto max = watts_in(parts[3]);
  if (min && max) {
    state.range = LimitRange{*min, *max, watts_in(parts[4])};
  }
  if (parts[5] != "-") {
    state.persistence = parts[5] == "1";
  }
  return state;
}

}  // namespace halfwatt

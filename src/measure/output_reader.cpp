#include "measure/output_reader.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace halfwatt {
namespace {

// More than a pipe holds. A program that never stops printing cannot keep us here.
constexpr int kLastReads = 16;

/// Signals are for the main thread.
class NoSignalsHere {
 public:
  NoSignalsHere() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignalsHere(const NoSignalsHere&) = delete;
  NoSignalsHere& operator=(const NoSignalsHere&) = delete;
  ~NoSignalsHere() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

OutputReader::OutputReader(Files files,
                           std::function<void(std::string_view)> take,
                           std::function<void()> message)
    : take_(std::move(take)),
      message_(std::move(message)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const NoSignalsHere inherited;
  thread_ = std::thread([this, files] { run(files); });
}

OutputReader::~OutputReader() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

// False at the end of the output.
bool OutputReader::read_some(int file) {
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): read() fills it
  const ssize_t got = ::read(file, buffer.data(), buffer.size());
  if (got > 0) {
    take_(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    return true;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

void OutputReader::run(Files files) {
  bool open = files.output >= 0;
  while (true) {
    std::array<pollfd, 3> wanted{pollfd{wake_.get(), POLLIN, 0},
                                 pollfd{open ? files.output : -1, POLLIN, 0},
                                 pollfd{files.messages, POLLIN, 0}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0) {
      continue;
    }
    if (wanted[2].revents != 0) {
      message_();
    }
    if (wanted[1].revents != 0) {
      open = read_some(files.output);
    }
    if (wanted[0].revents != 0) {
      break;
    }
  }
  for (int i = 0; open && i < kLastReads; ++i) {
    pollfd more{files.output, POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0 || !read_some(files.output)) {
      return;
    }
  }
}

}  // namespace halfwatt

#include "guard/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/remark.h"
#include "guard/controls.h"
#include "guard/held_card.h"
#include "guard/lasting_limit.h"
#include "guard/throw_away.h"
#include "guard/wire.h"

namespace halfwatt {
namespace {

// How long a card that does not answer is asked again: with somebody waiting, and with nobody
// left who would do it later. Then the entry in the journal stays for the next start.
constexpr Seconds kPatienceInCompany{2};
constexpr Seconds kPatienceAlone{60};
constexpr Seconds kPause{0.1};

// One error that tells of every card; that one could not be put back counts most.
void join(std::optional<Error>& all, const Error& more) {
  if (!all) {
    all = more;
    return;
  }
  all->message += "; " + more.message;
  if (more.kind == ErrorKind::not_restored) {
    all->kind = more.kind;
  }
}

class Guardian {
 public:
  Guardian(int socket, const ucred& parent, const StateHook& at)
      : socket_(socket), parent_(parent.pid), user_(parent.uid), at_(at) {}

  int live();

 private:
  enum class Wake { message, parent_is_gone, told_to_end };
  Wake wait(int parent_watch, int signals) const;
  /// False when there is nothing more to do.
  bool serve(const Message& request, Descriptor file);
  Message hold(const Message& request);
  Message set(const Message& request);
  Message continue_later(const Message& request);
  Message end_copy_later(const Message& request, Descriptor file);
  /// What went wrong with any card. Those that are back are let go.
  Result<void> put_all_back(Seconds patience);
  void remark_what_is_back() const;
  void enter(GuardianState state) const {
    if (at_) {
      at_(state);
    }
  }

  int socket_;
  pid_t parent_;
  uid_t user_;  ///< the parent's
  const StateHook& at_;
  LimitControls controls_;
  std::vector<HeldCard> cards_;
  std::vector<int> groups_;
  ThrowAway copy_;
  std::vector<std::string> put_back_;  ///< sentences, for the end
};

Message Guardian::hold(const Message& request) {
  if (request.size() < 4 || !cards_.empty()) {
    return answer(bad_input("hold: needed a state folder, a top and cards, once"));
  }
  const auto state_dir = request[1].empty() ? std::nullopt : std::optional(request[1]);
  HoldTerms terms{{}, holder(parent_), current_load(), watts_in(request[2]), at_};
  std::vector<std::string> remarks;
  std::vector<HeldCard> held;
  Message reply = {"ok"};
  for (std::size_t at = 3; at < request.size(); ++at) {
    const std::string& card = request[at];
    Result<std::unique_ptr<LimitControl>> control = controls_.open(card);
    if (!control) {
      return answer(control.error());
    }
    terms.folders = guard_folders(state_dir, is_shared_card(card));
    enter(GuardianState::opened);
    Result<HeldCard> one = HeldCard::hold(card, std::move(*control), terms, remarks);
    if (!one) {
      // The cards before it were only looked at; this closes their entries.
      for (HeldCard& each : held) {
        (void)each.restore();
      }
      return answer(one.error());
    }
    reply.push_back(word(one->found()));
    held.push_back(std::move(*one));
  }
  cards_ = std::move(held);
  reply.insert(reply.end(), remarks.begin(), remarks.end());
  return reply;
}

Message Guardian::set(const Message& request) {
  std::size_t index = 0;
  const auto limit = request.size() == 3 ? watts_in(request[2]) : std::nullopt;
  const bool known =
      limit &&
      std::from_chars(request[1].data(), request[1].data() + request[1].size(), index).ec ==
          std::errc() &&
      index < cards_.size();
  if (!known) {
    return answer(bad_input("set: needed a card that is held and milliwatts"));
  }
  const Result<Watts> in_force = cards_[index].set(*limit);
  return in_force ? Message{"ok", word(std::optional(*in_force))} : answer(in_force.error());
}

Message Guardian::continue_later(const Message& request) {
  int group = 0;
  const bool number =
      request.size() == 2 &&
      std::from_chars(request[1].data(), request[1].data() + request[1].size(), group).ec ==
          std::errc();
  // 1 is everybody's, 0 and -1 mean more than one group to kill().
  if (!number || group <= 1) {
    return answer(bad_input("continue_group: needed a process group"));
  }
  if (std::find(groups_.begin(), groups_.end(), group) != groups_.end()) {
    return {"ok"};  // a job that was stopped and goes on
  }
  groups_.push_back(group);
  for (HeldCard& card : cards_) {
    if (const Result<void> noted = card.remember_group(group); !noted) {
      return answer(noted.error());
    }
  }
  return {"ok"};
}

Message Guardian::end_copy_later(const Message& request, Descriptor file) {
  // A mark that says less would be found with others.
  const std::string variable = std::string(kCopyVariable) + "=";
  if (request.size() != 2 || !request[1].starts_with(variable) ||
      request[1].size() == variable.size()) {
    return answer(bad_input("end_copy: needed a mark"));
  }
  copy_ = {request[1], std::move(file)};  // the copy before it has ended
  return {"ok"};
}

Result<void> Guardian::put_all_back(Seconds patience) {
  for (const int group : groups_) {
    ::kill(-group, SIGCONT);
  }
  SteadyClock clock;
  const Seconds end = clock.now() + patience;
  std::optional<Error> wrong;
  while (!cards_.empty()) {
    std::vector<HeldCard> left;
    std::optional<Error> failure;
    for (HeldCard& card : cards_) {
      const Result<PutBack> back = card.restore();
      if (!back) {
        join(failure, back.error());
        left.push_back(std::move(card));
      } else if (back->action == RestoreAction::foreign) {
        join(wrong, Error{ErrorKind::device, back->sentence});
      } else if (back->action == RestoreAction::put_back) {
        put_back_.push_back(back->sentence);
      }
    }
    cards_ = std::move(left);
    if (failure && clock.now() >= end) {
      cards_.clear();  // lets the locks go: somebody else may have more luck
      join(wrong, *failure);
      break;
    }
    if (failure) {
      clock.sleep_until(clock.now() + kPause);
    }
  }
  return wrong ? Result<void>(*wrong) : Result<void>();
}

// After the last card and not before: a terminal that is held (Ctrl-S) or a full pipe would
// keep whoever writes to it waiting.
void Guardian::remark_what_is_back() const {
  for (const std::string& sentence : put_back_) {
    remark(sentence);
  }
}

bool Guardian::serve(const Message& request, Descriptor file) {
  const std::string& verb = request.front();
  if (verb == "release") {
    const Result<void> done = put_all_back(kPatienceInCompany);
    (void)send_message(socket_, done ? Message{"ok"} : answer(done.error())).has_value();
    return false;
  }
  const Message reply = verb == "hold"             ? hold(request)
                        : verb == "set"            ? set(request)
                        : verb == "continue_group" ? continue_later(request)
                        : verb == "leave"          ? answer_lasting(request, parent_)
                        : verb == "end_copy"       ? end_copy_later(request, std::move(file))
                                                   : answer(bad_input("not a word I know"));
  (void)send_message(socket_, reply);  // where nobody listens, wait() says so
  enter(GuardianState::waiting);
  return true;
}

Guardian::Wake Guardian::wait(int parent_watch, int signals) const {
  // A negative number is one that poll() passes over: no pidfd on an old kernel.
  pollfd watched[] = {{signals, POLLIN, 0}, {parent_watch, POLLIN, 0}, {socket_, POLLIN, 0}};
  while (::poll(watched, std::size(watched), -1) < 0 && errno == EINTR) {
  }
  if (watched[0].revents != 0) {
    return Wake::told_to_end;
  }
  return watched[1].revents != 0 ? Wake::parent_is_gone : Wake::message;
}

int Guardian::live() {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  const Descriptor signals(::signalfd(-1, &mask, SFD_CLOEXEC));
  const Descriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, parent_, 0)));
  // A parent that died before this line cannot be watched; its socket's end says so.
  enter(GuardianState::started);
  while (true) {
    const Wake wake = wait(watch.number(), signals.number());
    if (wake == Wake::message) {
      Descriptor file;
      const std::optional<Message> request = receive_message(socket_, &file);
      if (request && !serve(*request, std::move(file))) {
        return 0;
      }
      if (request) {
        continue;
      }
    }
    const Result<void> done = put_all_back(kPatienceAlone);
    if (wake != Wake::told_to_end) {
      end_throw_away(copy_, user_);  // its halfwatt is gone, and would have done it
    }
    remark_what_is_back();
    if (!done) {
      remark(done.error().message);
    }
    return done ? 0 : exit_code(done.error().kind);
  }
}

// What a terminal, a shell or a job scheduler sends to a whole group is not for the guardian:
// it ends when its work is done. TERM is waited for.
void set_signals() {
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGUSR1,
                           SIGUSR2, SIGALRM, SIGXFSZ}) {
    ::signal(signal, SIG_IGN);
  }
}

// Files and folders of whoever started us are not ours to keep; standard error is.
void let_go_of_everything() {
  ::setsid();
  if (::chdir("/") != 0) {
    // It stays where it is, which holds a folder and harms nothing else.
  }
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
  }
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0U) != 0) {
    for (int number = STDERR_FILENO + 1; number < 1024; ++number) {
      ::close(number);
    }
  }
  // The last to be killed when memory runs out; needs a privilege, and does without.
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    (void)!::write(score, "-1000", 5);
    ::close(score);
  }
}

}  // namespace

bool is_guardian(int argc, char** argv) { return argc >= 2 && argv[1] == kGuardianVerb; }

int guardian_main(int, char**, const StateHook& at) {
  set_signals();
  let_go_of_everything();
  // Whoever made the pair of sockets is the parent, whoever stands between (sudo, say).
  ucred parent{};
  socklen_t size = sizeof parent;
  int type = 0;
  socklen_t type_size = sizeof type;
  const bool socket = ::getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
                      type == SOCK_SEQPACKET &&
                      ::getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &parent, &size) == 0;
  if (!socket) {
    remark(fmt::format("{} is what halfwatt starts for itself; see halfwatt --help",
                       kGuardianVerb));
    return exit_code(ErrorKind::bad_input);
  }
  return Guardian(STDIN_FILENO, parent, at).live();
}

}  // namespace halfwatt

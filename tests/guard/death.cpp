#include "guard/death.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "base/clock.h"
#include "fake_nvml/fake_nvml.h"
#include "guard/card_lock.h"
#include "guard/cards.h"
#include "guard/guardian_client.h"

namespace halfwatt {
namespace {

constexpr const char* kVariable = "HALFWATT_TEST_DEATH";
constexpr std::uint32_t kFoundMw = 350'000;
constexpr std::uint32_t kStrangerMw = 222'000;
// A guardian that is alive restores within 2 s; the judge waits a little longer to see it late.
constexpr double kJudgement = 6;
constexpr double kWindow = 0.02;

int signal_of(Cause cause) {
  return cause == Cause::segv ? SIGSEGV : cause == Cause::term ? SIGTERM : SIGKILL;
}

/// What a victim needs to know, in its environment or memory.
struct Sentence {
  Death death;
  std::string done;    ///< made by whoever dies, so that nobody dies twice
  std::string script;  ///< of the fake
};

// The first to come here may die; the file says since when.
bool sentence_falls(const Sentence& sentence) {
  const int file = ::open(sentence.done.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return false;
  }
  const std::string now = fmt::format("{:.6f}", SteadyClock().now().value());
  (void)!::write(file, now.data(), now.size());
  ::close(file);
  return true;
}

void visit_by_stranger(const std::string& script_path) {
  const auto script = fake_nvml::completed(fake_nvml::read_script(script_path), script_path);
  fake_nvml::SharedState state(script);
  fake_nvml::History history(script.cards[0], state, 0);
  fake_nvml::Event event{};
  event.kind = fake_nvml::EventKind::limit;
  event.source = fake_nvml::Source::test;
  event.value = kStrangerMw;
  event.in_force = kStrangerMw;
  event.has_effect = 1;
  event.time_ns = state.now_ns();
  history.catch_up(event.time_ns);
  history.append(event);
}

void wait_for_the_end() {
  while (true) {
    ::pause();
  }
}

void carry_out(const Sentence& sentence) {
  const Death& death = sentence.death;
  if (death.stranger) {
    visit_by_stranger(sentence.script);
  }
  if (death.victim != Victim::guardian && death.together == DoubleDeath::one_by_one) {
    ::kill(::getppid(), signal_of(death.cause));
  }
  if (death.victim == Victim::both && death.together != DoubleDeath::one_by_one) {
    wait_for_the_end();  // comes from outside, for all at once
  }
  if (death.victim == Victim::parent) {
    return;
  }
  if (death.cause == Cause::exception) {
    throw std::runtime_error("injected");
  }
  ::kill(::getpid(), signal_of(death.cause));
}

std::string to_text(const Sentence& sentence) {
  const Death& death = sentence.death;
  return fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(death.victim),
                     static_cast<int>(death.cause), static_cast<int>(*death.guardian_at),
                     death.occurrence, static_cast<int>(death.together), death.stranger ? 1 : 0,
                     sentence.done, sentence.script);
}

Sentence from_text(const std::string& text) {
  Sentence sentence;
  int victim = 0;
  int cause = 0;
  int at = 0;
  int together = 0;
  std::istringstream in(text);
  in >> victim >> cause >> at >> sentence.death.occurrence >> together >>
      sentence.death.stranger >> sentence.done >> sentence.script;
  sentence.death.victim = static_cast<Victim>(victim);
  sentence.death.cause = static_cast<Cause>(cause);
  sentence.death.guardian_at = static_cast<GuardianState>(at);
  sentence.death.together = static_cast<DoubleDeath>(together);
  return sentence;
}

// A workload that crashes, as halfwatt sees it.
void let_a_child_crash() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  throw std::runtime_error("the child crashed");
}

void come_to(ParentState state, const Sentence& sentence) {
  const Death& death = sentence.death;
  if (death.parent_at != state || !sentence_falls(sentence)) {
    return;
  }
  if (death.cause == Cause::child_crash) {
    let_a_child_crash();
  }
  if (death.cause == Cause::exception) {
    std::terminate();  // as an exception that nobody catches
  }
  ::kill(::getpid(), signal_of(death.cause));
}

std::vector<std::string> uuids(const FakeNvml& fake, int cards) {
  std::vector<std::string> names;
  for (int card = 0; card < cards; ++card) {
    names.push_back(fake.card(static_cast<std::size_t>(card)).uuid);
  }
  return names;
}

/// A small halfwatt: what tune does, without measuring.
int live_as_parent(const GuardianOrder& order, const Sentence& sentence) {
  try {
    come_to(ParentState::started, sentence);
    auto client = GuardianClient::start(order);
    if (!client) {
      return 3;
    }
    come_to(ParentState::held, sentence);
    SteadyClock clock;
    for (const double limit : {300.0, 200.0, 250.0}) {
      if (!(*client)->set(Watts(limit))) {
        break;
      }
      come_to(ParentState::set, sentence);
      clock.sleep_until(clock.now() + Seconds(kWindow));
      come_to(ParentState::window, sentence);
      if (!(*client)->check()) {
        break;
      }
    }
    come_to(ParentState::restoring, sentence);
    return (*client)->restore() ? 0 : 6;
  } catch (const std::runtime_error&) {
    return 4;
  }
}

std::string cgroup_mount() {
  std::ifstream in("/proc/self/mounts");
  std::string device;
  std::string where;
  std::string type;
  for (std::string rest; in >> device >> where >> type && std::getline(in, rest);) {
    if (type == "cgroup2") {
      return where;
    }
  }
  return {};
}

void write_to(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// A parent whose whole world ends at once when told to.
class World {
 public:
  explicit World(DoubleDeath kind) : kind_(kind) {
    if (kind_ == DoubleDeath::cgroup) {
      group_ = fmt::format("{}/halfwatt-test-{}", cgroup_mount(), ::getpid());
      ::mkdir(group_.c_str(), 0755);
    }
  }
  ~World() {
    if (!group_.empty()) {
      wait_until([this] { return ::rmdir(group_.c_str()) == 0; });
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// The process to wait for.
  pid_t start(const std::function<int()>& body) {
    parent_ = start_child([&] {
      if (kind_ == DoubleDeath::cgroup) {
        write_to(group_ + "/cgroup.procs", "0");
      }
      if (kind_ != DoubleDeath::pid_namespace) {
        return body();
      }
      // As `unshare --pid --fork --kill-child` does it.
      if (::unshare(CLONE_NEWPID) != 0) {
        return 77;
      }
      const pid_t first = start_child(body);
      write_to(inner_file_, fmt::format("{}\n", first));
      int status = 0;
      ::waitpid(first, &status, 0);
      return 0;
    });
    return parent_;
  }
  void set_inner_file(std::string path) { inner_file_ = std::move(path); }
  void end() const {
    if (kind_ == DoubleDeath::cgroup) {
      write_to(group_ + "/cgroup.kill", "1");
    } else if (kind_ == DoubleDeath::pid_namespace) {
      pid_t first = 0;
      std::ifstream(inner_file_) >> first;
      ::kill(first, SIGKILL);
    }
  }

 private:
  DoubleDeath kind_;
  std::string group_;
  std::string inner_file_;
  pid_t parent_ = -1;
};

bool nobody_holds(const GuardianOrder& order) {
  return std::none_of(order.cards.begin(), order.cards.end(), [&](const std::string& card) {
    return find_holder(std::filesystem::path(*order.state_dir) / "locks", card).has_value();
  });
}

void judge(FakeNvml& fake, const Death& death, double death_time, Aftermath& after) {
  after.restored = true;
  for (std::size_t card = 0; card < static_cast<std::size_t>(death.cards); ++card) {
    const bool visited = death.stranger && card == 0;
    const std::uint32_t wanted = visited ? kStrangerMw : kFoundMw;
    const std::uint32_t now = fake.requested_mw(card);
    after.restored = after.restored && now == wanted;
    after.foreign_overwritten = after.foreign_overwritten || (visited && now != wanted);
    if (now != wanted) {
      after.what += fmt::format(" card {}: {} mW;", card, now);
    }
    for (const LimitWrite& write : fake.writes(card)) {
      const double when = static_cast<double>(write.time_ns) / 1e9;
      if (write.accepted && write.in_force_mw == kFoundMw && when > death_time) {
        after.seconds = std::max(after.seconds, when - death_time);
      }
    }
  }
}

}  // namespace

std::string describe(const Death& death) {
  const std::string where = death.guardian_at
                                ? fmt::format("guardian {}", text(*death.guardian_at))
                                : fmt::format("parent {}", text(*death.parent_at));
  return fmt::format(
      "{} by {} at {} ({}), {} cards{}{}", text(death.victim), text(death.cause), where,
      death.occurrence, death.cards,
      death.victim == Victim::both ? fmt::format(", {}", text(death.together)) : "",
      death.stranger ? ", with a stranger" : "");
}

std::optional<std::string> cannot_die(DoubleDeath together) {
  if (together == DoubleDeath::one_by_one) {
    return std::nullopt;
  }
  if (::geteuid() != 0) {
    return "needs root";
  }
  if (together == DoubleDeath::pid_namespace) {
    const int status = end_of(start_child([] { return ::unshare(CLONE_NEWPID); }));
    return status == 0 ? std::nullopt : std::optional<std::string>("unshare is not permitted");
  }
  const std::string group = fmt::format("{}/halfwatt-test-{}", cgroup_mount(), ::getpid());
  const bool made = ::mkdir(group.c_str(), 0755) == 0;
  const bool kills = ::access((group + "/cgroup.kill").c_str(), W_OK) == 0;
  ::rmdir(group.c_str());
  return made && kills ? std::nullopt
                       : std::optional<std::string>("no cgroup.kill may be written");
}

Aftermath die(const Death& death) {
  FakeNvml fake(FakeNvml::cards(static_cast<std::size_t>(death.cards)));
  fake.enter_environment();
  const std::string done = (fake.folder() / "death").string();
  const Sentence sentence{death, done, fake.script_path()};
  const GuardianOrder order{uuids(fake, death.cards), (fake.folder() / "state").string()};
  if (death.guardian_at) {
    ::setenv(kVariable, to_text(sentence).c_str(), 1);
  }
  World world(death.together);
  world.set_inner_file((fake.folder() / "inner").string());
  const pid_t parent = world.start([&] { return live_as_parent(order, sentence); });
  ::unsetenv(kVariable);
  Aftermath after;
  if (death.victim == Victim::both && death.together != DoubleDeath::one_by_one) {
    const auto time_is_told = [&] {
      std::error_code none;
      const auto size = std::filesystem::file_size(done, none);
      return !none && size > 0;
    };
    wait_until(time_is_told, kJudgement);
    world.end();
  }
  end_of(parent);
  after.died = std::filesystem::exists(done);
  double death_time = 0;
  std::ifstream(done) >> death_time;
  wait_until([&] { return nobody_holds(order); }, kJudgement);
  if (death.victim == Victim::both) {
    const int next = end_of(start_child([&] {
      auto client = GuardianClient::start(order);
      return client && (*client)->restore() ? 0 : 1;
    }));
    after.what += next == 0 ? "" : " the next start failed;";
  }
  judge(fake, death, death_time, after);
  return after;
}

StateHook death_hook() {
  const char* told = std::getenv(kVariable);
  if (told == nullptr) {
    return {};
  }
  return [sentence = from_text(told), times = std::make_shared<int>(0)](GuardianState state) {
    if (state == sentence.death.guardian_at && ++*times >= sentence.death.occurrence &&
        sentence_falls(sentence)) {
      carry_out(sentence);
    }
  };
}

std::string_view text(Victim victim) {
  constexpr std::string_view kTexts[] = {"parent", "guardian", "both"};
  return kTexts[static_cast<std::size_t>(victim)];
}

std::string_view text(Cause cause) {
  constexpr std::string_view kTexts[] = {"SIGKILL", "SIGSEGV", "SIGTERM", "exception",
                                         "child crash"};
  return kTexts[static_cast<std::size_t>(cause)];
}

std::string_view text(GuardianState state) {
  constexpr std::string_view kTexts[] = {
      "started",         "opened",  "locked",    "recovered", "waiting",
      "journalled",      "written", "read back", "restoring", "restore journalled",
      "restore written", "restored"};
  return kTexts[static_cast<std::size_t>(state)];
}

std::string_view text(ParentState state) {
  constexpr std::string_view kTexts[] = {"started", "held", "set", "window", "restoring"};
  return kTexts[static_cast<std::size_t>(state)];
}

std::string_view text(DoubleDeath together) {
  constexpr std::string_view kTexts[] = {"one by one", "pid namespace", "cgroup"};
  return kTexts[static_cast<std::size_t>(together)];
}

}  // namespace halfwatt

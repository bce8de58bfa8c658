#include "cli/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/job_device.h"
#include "cli/output.h"
#include "guard/privilege.h"
#include "measure/attend.h"
#include "measure/record.h"
#include "tune/verdict.h"

namespace halfwatt {
namespace {

constexpr int kOwnFailure = 125;  // as env, nice and timeout have it

/// The limit that the job is to have: watts, or a share of the highest one.
struct Wish {
  std::optional<Watts> watts;
  std::optional<double> percent;
  std::optional<std::string> device;  ///< that a record is of
};

Result<Wish> wish_of_limit(const Invocation& invocation, std::string text) {
  Wish wish;
  const bool share = text.ends_with('%');
  if (share) {
    text.pop_back();
  }
  Invocation value;
  value.add("--limit", text);
  constexpr double kMostWatts = 10000;
  const Result<double> number = value.number("--limit", 0, 1, share ? 100 : kMostWatts);
  if (!number) {
    return bad_input(
        fmt::format("--limit {}: needed watts, or a share of the highest limit "
                    "such as 70%",
                    *invocation.get("--limit")));
  }
  if (share) {
    wish.percent = *number;
  } else {
    wish.watts = Watts(*number);
  }
  return wish;
}

Result<Wish> wish_of_record(const Invocation& invocation) {
  const auto from = invocation.get("--from");
  if (!from || !invocation.has("--keep")) {
    return bad_input(from ? "--from needs --keep PERCENT: the share of the speed to keep"
                          : "--keep needs --from RECORD: what tune --record wrote");
  }
  const Result<double> percent = invocation.number("--keep", 0, 1, 100);
  if (!percent) {
    return percent.error();
  }
  const Result<Record> record = read_record(*from);
  if (!record) {
    return record.error();
  }
  AnalysisOptions options;
  options.keep_percent = {*percent};
  const Result<Verdict> verdict = analyze({to_series(*record)}, options);
  if (!verdict) {
    return verdict.error();
  }
  const SeriesVerdict& series = verdict->series.front();
  if (!series.advisable() || series.keep.empty() || !series.keep.front().limit) {
    return bad_input(
        fmt::format("{}: it names no limit that keeps {:g} % of the speed", *from, *percent));
  }
  Wish wish;
  wish.watts = Watts(*series.keep.front().limit);
  wish.device = record->header.device_id;
  return wish;
}

// nullopt: the limit is left alone.
Result<std::optional<Wish>> read_wish(const Invocation& invocation) {
  const auto limit = invocation.get("--limit");
  const bool by_record = invocation.has("--keep") || invocation.has("--from");
  if (limit && by_record) {
    return bad_input("--limit and --keep: needed one of them");
  }
  if (!limit && !by_record) {
    return std::optional<Wish>();
  }
  Result<Wish> wish = limit ? wish_of_limit(invocation, *limit) : wish_of_record(invocation);
  return wish ? Result<std::optional<Wish>>(std::move(*wish)) : wish.error();
}

/// Whoever slows the job, and what is to be put back after it. In the order of their making.
struct Limits {
  SteadyClock clock;
  JobDevices devices;
  std::unique_ptr<GuardianClient> guardian;
};

Result<void> set_limit(const Wish& wish, Limits& limits) {
  GuardianClient& guardian = *limits.guardian;
  const Watts wanted =
      wish.watts ? *wish.watts : guardian.top() * (wish.percent.value_or(100) / 100);
  if (wanted < guardian.bottom() || wanted > guardian.top()) {
    return bad_input(fmt::format(
        "a limit of {:g} W: needed {:g} to {:g} W{}", wanted.value(), guardian.bottom().value(),
        guardian.top().value(),
        wanted > guardian.top() ? "; only --max-limit goes above what was found" : ""));
  }
  const Result<Watts> set = guardian.set(wanted);
  if (!set) {
    return set.error();
  }
  constexpr Watts kCoarsestStep{25};  // of a card that rounds
  if (*set > wanted + kCoarsestStep || wanted > *set + kCoarsestStep) {
    return Error{ErrorKind::device,
                 fmt::format("a limit of {:g} W: the card says {:g} W after it was set: it or "
                             "its driver does not take it",
                             wanted.value(), set->value())};
  }
  remark(fmt::format("{:g} W while the command runs, then {:g} W again", set->value(),
                     guardian.found().value()));
  return {};
}

Result<void> hold(const Invocation& invocation, const Wish& wish, Limits& limits) {
  if (wish.device && invocation.has("--device") && invocation.get("--device") != wish.device) {
    remark(fmt::format("--from: the record is of {}, and one card's limit may not fit another",
                       *wish.device));
  }
  Result<GuardianProcess> called = call_guardian(invocation, wish.device);
  if (!called) {
    return called.error();
  }
  Result<JobDevices> devices = find_job_devices(invocation, wish.device, limits.clock);
  if (!devices) {
    return devices.error();
  }
  limits.devices = std::move(*devices);
  if (const Result<void> fit = check_devices(invocation, limits.devices); !fit) {
    return fit.error();
  }
  Result<std::unique_ptr<GuardianClient>> guardian =
      hold_limits(invocation, limits.devices, std::move(*called));
  if (!guardian) {
    return guardian.error();
  }
  limits.guardian = std::move(*guardian);
  return set_limit(wish, limits);
}

void tell_who_is_left(const Job& job) {
  const std::vector<ProcessInfo> left = job.tree().members();
  const auto living = std::count_if(left.begin(), left.end(),
                                    [](const ProcessInfo& each) { return !each.zombie; });
  if (living > 0) {
    remark(fmt::format("{}: ended, and {} of its processes still run without a limit of ours",
                       job.name(), living));
  }
}

// A guardian that died put the limit back with it, and the job is to run under the limit.
void look_after(const Wish& wish, Limits& limits) {
  const Result<void> fine = limits.guardian->check();
  if (fine) {
    return;
  }
  remark(fine.error().message);
  if (fine.error().kind == ErrorKind::not_restored) {
    return;  // there is no guardian any more
  }
  if (const Result<void> set = set_limit(wish, limits); !set) {
    remark(fmt::format("the command goes on without the limit: {}", set.error().message));
  }
}

// The job's own status, or the reason why it did not start.
Result<int> run_under(const Invocation& invocation,
                      const std::optional<Wish>& wish,
                      Limits& limits) {
  Terminal terminal;
  HandedSignals signals;
  InterruptListener listener;
  JobOptions options;
  if (terminal.file() >= 0) {
    options.before_exec = [&listener](pid_t group) { listener.join(group); };
  }
  options.words = invocation.command();
  options.environment = limits.devices.environment;
  options.terminal = &terminal;
  options.on_group = group_handler(limits.devices, limits.guardian.get());
  const Result<std::unique_ptr<Job>> job = Job::start(std::move(options));
  if (!job) {
    return job.error();
  }
  for (const std::string& each : (*job)->remarks()) {
    remark(each);
  }
  const JobEnd end = attend(**job, terminal, signals, listener, [&] {
    if (limits.guardian) {
      look_after(*wish, limits);
    }
  });
  if (limits.guardian) {
    tell_who_is_left(**job);
  }
  return end.shell_status();
}

Result<int> run_all(const Invocation& invocation) {
  if (invocation.command().empty()) {
    return bad_input("run: no command; needed one behind --: halfwatt run -- python train.py");
  }
  const Result<std::optional<Wish>> wish = read_wish(invocation);
  if (!wish) {
    return wish.error();
  }
  Limits limits;
  if (*wish) {
    if (const Result<void> held = hold(invocation, **wish, limits); !held) {
      return held.error();
    }
  }
  if (const Result<void> dropped = drop_privileges(); !dropped) {
    return dropped.error();
  }
  Result<int> status = run_under(invocation, *wish, limits);
  if (limits.guardian) {
    if (const Result<void> back = limits.guardian->restore(); !back) {
      remark(back.error().message);  // the status is the command's own all the same
    }
  }
  return status;
}

int run_job(const Invocation& invocation) {
  const Result<int> status = run_all(invocation);
  if (status) {
    return *status;
  }
  remark(status.error().message);
  const ErrorKind kind = status.error().kind;
  return kind == ErrorKind::no_such_command || kind == ErrorKind::not_executable
             ? exit_code(kind)
             : kOwnFailure;
}

}  // namespace

Command run_command() {
  Command command;
  command.name = "run";
  command.summary = "run a real job under a power limit";
  command.description =
      "Runs a command under a power limit and puts the limit back when it ends. The command is "
      "never ended by halfwatt: input, terminal, signals and job control are its own, and so "
      "is "
      "the exit status (128 and the signal's number if one killed it; 125 to 127 if it was not "
      "started). A second Ctrl-C kills it with all that it started.\n\n"
      "Without a limit nothing is written to any card.";
  command.arguments = "-- COMMAND...";
  command.options = {
      {"--limit", "LIMIT", "watts, or a share of the highest limit: 280, 70%"},
      {"--keep", "PERCENT", "the limit that keeps this share of the speed, by --from"},
      {"--from", "RECORD", "what tune --record or sweep --record wrote"},
  };
  for (const Option& each : job_device_options()) {
    command.options.push_back(each);
  }
  command.examples = {
      {"halfwatt run --limit 280 -- python train.py --epochs 90", "at 280 W"},
      {"halfwatt run --keep 95 --from run.jsonl -- python train.py",
       "at the lowest limit that keeps 95 % of the speed, by a record of this card"},
  };
  command.run_job = run_job;
  return command;
}

}  // namespace halfwatt

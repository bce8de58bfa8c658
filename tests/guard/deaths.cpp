// test_guard_deaths [SHARE]: a thousand injected deaths and a table of what became of the
// cards. SHARE (1 by default) is the part of the thousand to run. Fails where a limit stayed
// changed, a stranger's was overwritten, or a survivor took longer than 2 s.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "guard/death.h"
#include "guard/guardian.h"

namespace halfwatt {
namespace {

constexpr double kPatience = 2;
constexpr int kRounds = 5;  // of 168 deaths in a guardian's state
constexpr int kParentRounds = 4;
constexpr int kDoubleDeaths = 200;
constexpr int kStrangers = 48;

/// One line of the table.
struct Row {
  int deaths = 0;
  int restored = 0;
  int overwritten = 0;
  int missed = 0;  // never came to its state
  double slowest = 0;
};

using Table = std::map<std::string, Row>;

void run(const Death& death, const std::string& name, Table& table) {
  const Aftermath after = die(death);
  Row& row = table[name];
  if (!after.died) {
    ++row.missed;
    fmt::print("never came there: {}\n", describe(death));
    return;
  }
  ++row.deaths;
  row.restored += after.restored ? 1 : 0;
  row.overwritten += after.foreign_overwritten ? 1 : 0;
  row.slowest = std::max(row.slowest, after.seconds);
  if (!after.restored || after.foreign_overwritten ||
      (death.victim != Victim::both && after.seconds > kPatience)) {
    fmt::print("FAILED: {}:{} {:.3f} s\n", describe(death), after.what, after.seconds);
  }
}

// Later rounds kill at later visits, where a state has some: with several cards it has many.
int occurrence(const Death& death, int round) {
  const GuardianState at = *death.guardian_at;
  if (at == GuardianState::started) {
    return 1;
  }
  const int visits = at == GuardianState::waiting ? 4
                     : at >= GuardianState::journalled && at <= GuardianState::read_back
                         ? 4 * death.cards
                         : death.cards;
  return 1 + (round * std::max(1, visits / kRounds)) % visits;
}

void guardian_states(int round, Table& table) {
  struct Way {
    Victim victim;
    Cause cause;
  };
  constexpr Way kWays[] = {{Victim::parent, Cause::kill},       {Victim::parent, Cause::segv},
                           {Victim::parent, Cause::term},       {Victim::guardian, Cause::kill},
                           {Victim::guardian, Cause::segv},     {Victim::guardian, Cause::term},
                           {Victim::guardian, Cause::exception}};
  for (const GuardianState state : kGuardianStates) {
    for (const Way& way : kWays) {
      for (const int cards : {1, 8}) {
        Death death;
        death.victim = way.victim;
        death.cause = way.cause;
        death.guardian_at = state;
        death.cards = cards;
        death.occurrence = occurrence(death, round);
        run(death, fmt::format("1 guardian {}", text(state)), table);
      }
    }
  }
}

void parent_states(Table& table) {
  for (const ParentState state : {ParentState::started, ParentState::held, ParentState::set,
                                  ParentState::window, ParentState::restoring}) {
    for (const Cause cause :
         {Cause::kill, Cause::segv, Cause::term, Cause::exception, Cause::child_crash}) {
      for (const int cards : {1, 8}) {
        Death death;
        death.victim = Victim::parent;
        death.cause = cause;
        death.parent_at = state;
        death.cards = cards;
        run(death, fmt::format("2 parent {}", text(state)), table);
      }
    }
  }
}

void double_deaths(int number, Table& table) {
  constexpr DoubleDeath kKinds[] = {DoubleDeath::one_by_one, DoubleDeath::pid_namespace,
                                    DoubleDeath::cgroup};
  for (int each = 0; each < number; ++each) {
    Death death;
    death.victim = Victim::both;
    death.together = kKinds[each % 3];
    if (cannot_die(death.together)) {
      death.together = DoubleDeath::one_by_one;
    }
    death.guardian_at = kGuardianStates[static_cast<std::size_t>(each / 3) % 12];
    death.cards = each % 2 == 0 ? 1 : 8;
    death.occurrence = occurrence(death, each / 36);
    run(death, fmt::format("3 both, {}", text(death.together)), table);
  }
}

void strangers(int number, Table& table) {
  for (int each = 0; each < number; ++each) {
    Death death;
    death.victim = static_cast<Victim>(each % 3);
    death.guardian_at = GuardianState::waiting;
    death.occurrence = 2 + each % 3;
    death.cards = each % 2 == 0 ? 1 : 8;
    death.stranger = true;
    run(death, "4 with a stranger", table);
  }
}

bool print(const Table& table) {
  bool good = true;
  Row all;
  fmt::print("{:<30}{:>8}{:>10}{:>13}{:>10}\n", "state of the loop", "deaths", "restored",
             "overwritten", "slowest");
  for (const auto& [name, row] : table) {
    fmt::print("{:<30}{:>8}{:>10}{:>13}{:>8.3f} s\n", name.substr(2), row.deaths, row.restored,
               row.overwritten, row.slowest);
    all.deaths += row.deaths;
    all.restored += row.restored;
    all.overwritten += row.overwritten;
    const bool single = name.front() == '1' || name.front() == '2';
    good = good && row.restored == row.deaths && row.overwritten == 0 && row.missed == 0 &&
           (!single || row.slowest < kPatience);
  }
  fmt::print("{:<30}{:>8}{:>10}{:>13}\n", "all", all.deaths, all.restored, all.overwritten);
  return good;
}

int run_all(double share) {
  const auto part = [share](int whole) { return std::max(1, static_cast<int>(whole * share)); };
  Table table;
  for (int round = 0; round < part(kRounds); ++round) {
    guardian_states(round, table);
  }
  for (int round = 0; round < part(kParentRounds); ++round) {
    parent_states(table);
  }
  double_deaths(part(kDoubleDeaths), table);
  strangers(part(kStrangers), table);
  return print(table) ? 0 : 1;
}

}  // namespace
}  // namespace halfwatt

int main(int argc, char** argv) {
  if (halfwatt::is_guardian(argc, argv)) {
    return halfwatt::guardian_main(argc, argv, halfwatt::death_hook());
  }
  return halfwatt::run_all(argc > 1 ? std::atof(argv[1]) : 1);
}

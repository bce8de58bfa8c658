#include <algorithm>
#include <array>

#include "cli/analyze.h"
#include "cli/bench.h"
#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/convert.h"
#include "cli/devices.h"
#include "cli/help.h"
#include "cli/infer.h"
#include "cli/inspect.h"
#include "cli/limit.h"
#include "cli/monitor.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/restore.h"
#include "cli/run.h"
#include "cli/status.h"
#include "cli/step.h"
#include "cli/study.h"
#include "cli/sweep.h"
#include "cli/train.h"

namespace halfwatt {
namespace {

Command man_command() {
  Command command;
  command.name = "man";
  command.summary = "print the manual page";
  command.description = "Prints the manual page in roff: halfwatt man | man -l -";
  command.run = [](const Invocation&) { return print(man_page()); };
  return command;
}

}  // namespace

std::span<const Command> commands() {
  static const std::array table = {
      study_command(),   analyze_command(), tune_command(),    sweep_command(),
      run_command(),     train_command(),   infer_command(),   calibrate_command(),
      plan_command(),    inspect_command(), convert_command(), devices_command(),
      monitor_command(), limit_command(),   status_command(),  restore_command(),
      bench_command(),   step_command(),    man_command()};
  return table;
}

const Command* find_command(std::string_view name) {
  const auto all = commands();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const Command& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace halfwatt

#pragma once

#include <sys/types.h>

namespace halfwatt {

/// From here on the first INT, TERM, HUP or QUIT ends a measurement in order, the second one
/// the process.
void handle_interruptions();
/// From here on Ctrl-Z waits until the copy that is measured can be stopped with us.
void handle_stops();

/// Whether somebody wants the end.
bool interruption_is_asked();
/// Whether Ctrl-Z came since stop_ourselves().
bool stop_is_asked();
/// Stops this process as Ctrl-Z does, and returns when it is continued; at once where no shell
/// would ever do that.
void stop_ourselves();
/// How often this process was continued, whoever stopped it.
int times_continued();

}  // namespace halfwatt

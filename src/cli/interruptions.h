#pragma once

#include <sys/types.h>

namespace halfwatt {

/// From here on the first INT, TERM, HUP or QUIT ends a measurement in order, the second one
/// the process.
void handle_interruptions();
/// From here on Ctrl-Z waits until the copy that is measured can be stopped with us.
void handle_stops();

/// From here on USR1 asks for a checkpoint, as Slurm does before a job's time is over.
void handle_saves();

/// Whether somebody wants the end.
bool interruption_is_asked();
/// The signal that asked for it; 0 if none did.
int interruption_signal();
/// Whether USR1 came since this was asked last.
bool save_is_asked();
/// Whether Ctrl-Z came since stop_ourselves().
bool stop_is_asked();
/// Stops this process as Ctrl-Z does, and returns when it is continued; at once where no shell
/// would ever do that.
void stop_ourselves();
/// How often this process was continued, whoever stopped it.
int times_continued();

}  // namespace halfwatt

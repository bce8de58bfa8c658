#pragma once

namespace halfwatt {

/// From now on the first of SIGINT, SIGTERM, SIGHUP and SIGQUIT asks to end in order; the
/// second one ends the process.
void handle_interruptions();

/// Whether such a signal came.
bool interruption_is_asked();

}  // namespace halfwatt

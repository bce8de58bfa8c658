#include "cli/interruptions.h"

#include <csignal>
#include <initializer_list>

namespace halfwatt {
namespace {

volatile std::sig_atomic_t end_asked = 0;
volatile std::sig_atomic_t save_asked = 0;
volatile std::sig_atomic_t stop_asked = 0;
volatile std::sig_atomic_t continued = 0;

void on(int signal, void (*handler)(int), unsigned flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(flags);
  ::sigaction(signal, &action, nullptr);
}

void note_stop(int) { stop_asked = 1; }

}  // namespace

void handle_interruptions() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    on(
        signal, [](int which) { end_asked = which; }, SA_RESETHAND);
  }
}

void handle_saves() {
  on(
      SIGUSR1, [](int) { save_asked = 1; }, SA_RESTART);
}

void handle_stops() {
  on(SIGTSTP, note_stop, SA_RESTART);
  on(
      SIGCONT, [](int) { continued = continued + 1; }, SA_RESTART);
}

bool interruption_is_asked() { return end_asked != 0; }
int interruption_signal() { return end_asked; }
bool save_is_asked() {
  const bool asked = save_asked != 0;
  save_asked = 0;
  return asked;
}
bool stop_is_asked() { return stop_asked != 0; }
int times_continued() { return continued; }

// SIGTSTP and not SIGSTOP: the kernel drops it where nobody would continue us.
void stop_ourselves() {
  stop_asked = 0;
  on(SIGTSTP, SIG_DFL, 0);
  ::raise(SIGTSTP);
  on(SIGTSTP, note_stop, SA_RESTART);
}

}  // namespace halfwatt

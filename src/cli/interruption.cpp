#include "cli/interruption.h"

#include <csignal>
#include <initializer_list>

namespace halfwatt {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

}  // namespace

bool interruption_is_asked() { return asked_to_stop != 0; }

void handle_interruptions() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_stop = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace halfwatt

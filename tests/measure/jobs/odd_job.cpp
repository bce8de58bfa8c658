// Commands of all sorts, as tests need them: odd_job VERB [ARGUMENT]. Steps are known work of
// the processor, and are told as tqdm tells them.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

volatile double sink = 0;

void work(double milliseconds_of_work) {
  // About a nanosecond each on machines of today; only that it is constant matters.
  const auto rounds = static_cast<long>(milliseconds_of_work * 3e5);
  double x = 1;
  for (long i = 0; i < rounds; ++i) {
    x = x * 1.0000001 + 1e-9;
  }
  sink = x;
}

void tell(int step, int total, const char* more = "") {
  const long percent = 100L * step / total;
  std::fprintf(stderr, "\rstep: %3ld%%|####      | %d/%d [00:01<00:09, 9.99it/s%s]", percent,
               step, total, more);
}

int steps(int count, double each, const char* more = "") {
  for (int i = 1; i <= count; ++i) {
    work(each);
    tell(i, count, more);
  }
  std::fprintf(stderr, "\n");
  return 0;
}

void write_pid(const char* path) {
  if (FILE* file = std::fopen(path, "w")) {
    std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
    std::fclose(file);
  }
}

[[noreturn]] void sleep_for_ever() {
  while (true) {
    ::pause();
  }
}

int ignore_term(const char* ready) {
  std::signal(SIGTERM, SIG_IGN);
  write_pid(ready);
  sleep_for_ever();
}

// Leaves its group, its session and its parent, as a daemon does.
int fork_away(const char* ready) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) {
      std::signal(SIGTERM, SIG_IGN);
      write_pid(ready);
      sleep_for_ever();
    }
    std::_Exit(0);
  }
  ::wait(nullptr);
  sleep_for_ever();
}

int megabytes(const char* count) {
  const std::string line(65536, '\xff');
  for (long left = std::atol(count) * 16; left > 0; --left) {
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return steps(20, 1);
}

int no_memory(const char* batch) {
  rlimit limit{256UL << 20U, 256UL << 20U};
  ::setrlimit(RLIMIT_AS, &limit);
  std::vector<char> all(static_cast<std::size_t>(std::atol(batch)) << 20U, 'x');
  sink = all.back();
  return steps(1000000, 2);
}

int nan_loss() {
  for (int i = 1;; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    tell(i, 1000000, ", loss=nan");
  }
}

// What the environment of a command is: its signals, files and session, one line each.
int surroundings() {
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  int blocked = 0;
  std::string ignored;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    blocked += ::sigismember(&mask, number) == 1 ? 1 : 0;
    ignored += action.sa_handler == SIG_IGN ? " " + std::to_string(number) : "";
  }
  int files = 0;
  for (int file = 3; file < 1024; ++file) {
    files += ::fcntl(file, F_GETFD) >= 0 ? 1 : 0;
  }
  std::printf("blocked %d\nignored%s\nfiles %d\nleader %d\nterminal %d\nvalue %s\n", blocked,
              ignored.c_str(), files, ::getpgrp() == ::getpid() ? 1 : 0, ::isatty(1),
              std::getenv("ODD_JOB") != nullptr ? std::getenv("ODD_JOB") : "none");
  return 0;
}

int copy_input() {
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    std::putchar(c);
  }
  return 0;
}

// Counts up, and then down for ever.
int count_back() {
  for (int i = 1; i < 300; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
    tell(i, 1000000);
  }
  for (int i = 200; true; i = std::max(i - 1, 100)) {
    std::this_thread::sleep_for(milliseconds(2));
    tell(i, 1000000);
  }
}

// Like `steps` for ever, on several processes; only the first tells.
int crowd(const char* count) {
  for (int i = 1; i < std::atoi(count); ++i) {
    if (::fork() == 0) {
      while (true) {
        work(5);
      }
    }
  }
  return steps(100000000, 5);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const char* argument = argc > 2 ? argv[2] : "0";
  if (verb == "steps") {
    return steps(std::max(std::atoi(argument), 1), argc > 3 ? std::atof(argv[3]) : 5);
  }
  if (verb == "exit") {
    std::fprintf(stderr, "odd_job: cannot open \x1b[31mdata\x1b[0m.bin\n");
    return std::atoi(argument);
  }
  if (verb == "kill") {
    return std::raise(std::atoi(argument));
  }
  if (verb == "close") {
    ::close(1);
    ::close(2);
    sleep_for_ever();
  }
  if (verb == "hang") {
    tell(1, 10);
    tell(2, 10);
    sleep_for_ever();
  }
  using Verb = int (*)(const char*);
  const std::map<std::string, Verb> verbs = {
      {"ignore-term", ignore_term},
      {"fork-away", fork_away},
      {"megabytes", megabytes},
      {"no-memory", no_memory},
      {"crowd", crowd},
      {"nan", [](const char*) { return nan_loss(); }},
      {"count-back", [](const char*) { return count_back(); }},
      {"surroundings", [](const char*) { return surroundings(); }},
      {"copy", [](const char*) { return copy_input(); }},
  };
  const auto found = verbs.find(verb);
  return found == verbs.end() ? 64 : found->second(argument);
}

/* A job: progress_writer count|nan|same|forever|fork|threads|rank N. */
#include <halfwatt_progress.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

static unsigned long steps;

static void count(double loss, double change) {
  unsigned long i;
  for (i = 0; i < steps; ++i) {
    halfwatt_step_items(1, 2);
    halfwatt_loss(loss + change * (double)i);
  }
}

static void* count_in_thread(void* unused) {
  count(1, 0.5);
  return unused;
}

/* Steps before a fork, in the child, and after it. */
static void count_across_fork(void) {
  pid_t child;
  count(1, 0.5);
  child = fork();
  count(1, 0.5);
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void count_in_threads(void) {
  pthread_t threads[4];
  int i;
  for (i = 0; i < 4; ++i) {
    pthread_create(&threads[i], NULL, count_in_thread, NULL);
  }
  for (i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[1] : "";
  steps = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
  if (strcmp(what, "count") == 0) {
    count(1, 0.5);
  } else if (strcmp(what, "nan") == 0) {
    count((double)__builtin_nanf(""), 0);
  } else if (strcmp(what, "same") == 0) {
    count(0.25, 0);
  } else if (strcmp(what, "fork") == 0) {
    count_across_fork();
  } else if (strcmp(what, "threads") == 0) {
    count_in_threads();
  } else if (strcmp(what, "forever") == 0) {
    for (;;) {
      count(1, 0.5);
    }
  } else {
    fprintf(stderr,
            "progress_writer: count, nan, same, fork, threads or forever, and a number\n");
    return 2;
  }
  return 0;
}

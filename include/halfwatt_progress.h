/* halfwatt_progress.h: tells halfwatt how far a job has come. C99 and C++11, gcc or clang,
 * Linux; this one file, nothing to link. Call halfwatt_step() where a step of the job has
 * ended:
 *
 *     halfwatt_step(1);             // one step more
 *     halfwatt_step_items(1, 32);   // the same, of 32 items
 *     halfwatt_loss(loss);          // the loss as of now; NaN is worth telling
 *
 * Outside of halfwatt (HALFWATT_PROGRESS unset) nothing happens. No call ever blocks or fails.
 * Any thread and any forked child may call: each has a slot of its own, and the slots of one
 * rank (LOCAL_RANK, else RANK, else 0) add up. docs/progress.md describes the page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFWATT_PROGRESS_H
#define HALFWATT_PROGRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#define HALFWATT_PAGE_MAGIC "HALFWATT"
#define HALFWATT_PAGE_VERSION 1u
#define HALFWATT_PAGE_SLOTS 127u
#define HALFWATT_SLOT_HAS_ITEMS 1u

/* All numbers in the byte order of the machine. Written once by halfwatt, except `generation`.
 */
struct halfwatt_page_header {
  char magic[8]; /* "HALFWATT", no zero behind it */
  uint32_t version;
  uint32_t page_bytes;
  uint32_t header_bytes;
  uint32_t slot_bytes;
  uint32_t slots;
  uint32_t generation; /* from 1; one more whenever halfwatt starts the job again */
  uint32_t reserved[24];
};

/* Written by one thread only, its owner. `sequence` is odd while it writes. */
struct halfwatt_page_slot {
  uint32_t sequence;
  uint32_t owner;       /* id of the thread; 0: nobody yet */
  uint32_t owner_space; /* inode of the owner's namespace of ids, lower half; 0: not known */
  uint32_t generation;  /* of the page when the owner took the slot */
  uint32_t rank;
  uint32_t flags;          /* HALFWATT_SLOT_HAS_ITEMS */
  uint64_t steps;          /* ended so far */
  uint64_t changed_ns;     /* CLOCK_MONOTONIC at the last change of `steps` */
  double items;            /* done so far, if flags say so */
  double loss;             /* the last one told */
  uint64_t losses;         /* how many were told */
  uint64_t losses_dead;    /* how many of these were not finite */
  uint64_t losses_changed; /* how many differed from the one before */
  uint32_t reserved[12];
};

struct halfwatt_page {
  struct halfwatt_page_header header;
  struct halfwatt_page_slot slots[HALFWATT_PAGE_SLOTS];
};

/* What a thread knows about its slot; inner detail. */
struct halfwatt_writer {
  struct halfwatt_page_slot* slot;
  const volatile uint8_t* alive; /* reads 0 in a forked child */
  pid_t process;                 /* where memory cannot be made to: its id */
  int32_t off;                   /* 1: nothing to write to */
  uint64_t steps;                /* not written yet: the page was in use */
  double items;
};

/* Weak, so that all files of a program share them. */
__attribute__((weak)) __thread struct halfwatt_writer halfwatt_writer_of_thread_;
__attribute__((weak)) struct halfwatt_page* halfwatt_page_of_process_;
__attribute__((weak)) uint8_t* halfwatt_alive_;

static inline uint64_t halfwatt_now_ns_(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint32_t halfwatt_id_space_(void) {
  struct stat about;
  return stat("/proc/self/ns/pid", &about) == 0 ? (uint32_t)about.st_ino : 0;
}

static inline uint32_t halfwatt_rank_(void) {
  const char* text = getenv("LOCAL_RANK");
  if (text == NULL || *text == '\0') {
    text = getenv("RANK");
  }
  return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

/* Opens the page for the process; NULL where there is none, or not one of this version. */
static inline struct halfwatt_page* halfwatt_map_(int file) {
  struct stat about;
  struct halfwatt_page* page;
  void* memory;
  if (fstat(file, &about) != 0 || about.st_size != (off_t)sizeof(struct halfwatt_page)) {
    return NULL;
  }
  memory =
      mmap(NULL, sizeof(struct halfwatt_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    return NULL;
  }
  page = (struct halfwatt_page*)memory;
  if (memcmp(page->header.magic, HALFWATT_PAGE_MAGIC, sizeof page->header.magic) != 0 ||
      page->header.version != HALFWATT_PAGE_VERSION ||
      page->header.page_bytes != sizeof(struct halfwatt_page) ||
      page->header.slot_bytes != sizeof(struct halfwatt_page_slot)) {
    munmap(memory, sizeof(struct halfwatt_page));
    return NULL;
  }
  return page;
}

/* A byte that the kernel sets to 0 in every forked child; NULL where it cannot (before 4.14).
 */
static inline uint8_t* halfwatt_make_alive_(void) {
#ifdef MADV_WIPEONFORK
  const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return NULL;
  }
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    return NULL;
  }
  return (uint8_t*)memory;
#else
  return NULL;
#endif
}

static inline void halfwatt_begin_(struct halfwatt_page_slot* slot) {
  /* Odd, also if the last owner was killed between begin and end. */
  __atomic_store_n(&slot->sequence, (slot->sequence + 1u) | 1u, __ATOMIC_RELAXED);
}

static inline void halfwatt_end_(struct halfwatt_page_slot* slot) {
  __atomic_store_n(&slot->sequence, slot->sequence + 1u, __ATOMIC_RELEASE);
}

/* Stores inside begin and end are releases: whoever sees one also sees that it has begun. */
static inline void halfwatt_put_(uint64_t* field, uint64_t value) {
  __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static inline void halfwatt_put_word_(uint32_t* field, uint32_t value) {
  __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static inline void halfwatt_put_double_(double* field, double value) {
  __atomic_store(field, &value, __ATOMIC_RELEASE);
}

static inline int halfwatt_is_gone_(const struct halfwatt_page_slot* slot, uint32_t space) {
  return slot->owner != 0 && space != 0 && slot->owner_space == space &&
         kill((pid_t)slot->owner, 0) != 0 && errno == ESRCH;
}

static inline void halfwatt_take_(struct halfwatt_page_slot* slot,
                                  uint32_t generation,
                                  uint32_t rank,
                                  uint32_t space) {
  const int goes_on = slot->owner != 0 && slot->generation == generation && slot->rank == rank;
  halfwatt_begin_(slot);
  halfwatt_put_word_(&slot->owner, (uint32_t)syscall(SYS_gettid));
  halfwatt_put_word_(&slot->owner_space, space);
  if (!goes_on) {
    halfwatt_put_word_(&slot->rank, rank);
    halfwatt_put_word_(&slot->flags, 0);
    halfwatt_put_(&slot->steps, 0);
    halfwatt_put_(&slot->changed_ns, 0);
    halfwatt_put_double_(&slot->items, 0);
    halfwatt_put_(&slot->losses, 0);
    halfwatt_put_(&slot->losses_dead, 0);
    halfwatt_put_(&slot->losses_changed, 0);
    halfwatt_put_word_(&slot->generation, generation);
  }
  halfwatt_end_(slot);
}

/* A slot that nobody has, else one whose owner is gone and that counted for the same rank (it
 * is counted on) or for a job before this one. Under the lock of the file. */
static inline struct halfwatt_page_slot* halfwatt_claim_(struct halfwatt_page* page) {
  const uint32_t generation = __atomic_load_n(&page->header.generation, __ATOMIC_ACQUIRE);
  const uint32_t rank = halfwatt_rank_();
  const uint32_t space = halfwatt_id_space_();
  struct halfwatt_page_slot* found = NULL;
  uint32_t i;
  for (i = 0; i < HALFWATT_PAGE_SLOTS; ++i) {
    struct halfwatt_page_slot* slot = &page->slots[i];
    const int counts_now = slot->generation == generation;
    if (slot->owner == 0) {
      found = found != NULL ? found : slot;
      break; /* slots are taken from the first on */
    }
    if ((!counts_now || slot->rank == rank) && halfwatt_is_gone_(slot, space)) {
      found = slot;
      if (counts_now) {
        break;
      }
    }
  }
  if (found != NULL) {
    halfwatt_take_(found, generation, rank, space);
  }
  return found;
}

/* 0 if the page is this thread's now. Gives way a few times to whoever has it, which takes
 * microseconds, and never waits. */
static inline int halfwatt_lock_(int file) {
  int tries = 20;
  int failed;
  while ((failed = flock(file, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK &&
         --tries > 0) {
    sched_yield();
  }
  return failed;
}

/* Finds a slot for this thread. Leaves it for the next call if the page is in use just now. */
static inline void halfwatt_open_(struct halfwatt_writer* writer) {
  const char* path = getenv("HALFWATT_PROGRESS");
  int file;
  writer->slot = NULL;
  file = path != NULL && *path != '\0' ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0) {
    writer->off = 1;
    return;
  }
  if (halfwatt_lock_(file) != 0) {
    writer->off = errno != EWOULDBLOCK;
    close(file);
    return;
  }
  if (halfwatt_page_of_process_ == NULL) {
    halfwatt_page_of_process_ = halfwatt_map_(file);
  }
  if (halfwatt_alive_ == NULL) {
    halfwatt_alive_ = halfwatt_make_alive_();
  }
  if (halfwatt_page_of_process_ != NULL) {
    writer->slot = halfwatt_claim_(halfwatt_page_of_process_);
  }
  flock(file, LOCK_UN); /* the mapping would hold it */
  close(file);
  writer->off = writer->slot == NULL;
  writer->process = getpid();
  writer->alive = halfwatt_alive_;
  if (halfwatt_alive_ != NULL) {
    *halfwatt_alive_ = 1;
  }
}

static inline int halfwatt_was_forked_(const struct halfwatt_writer* writer) {
  return writer->alive != NULL ? *writer->alive == 0 : writer->process != getpid();
}

/* The slot of this thread, or NULL. */
static inline struct halfwatt_page_slot* halfwatt_slot_(struct halfwatt_writer* writer) {
  if (__builtin_expect(writer->slot != NULL, 1)) {
    if (__builtin_expect(!halfwatt_was_forked_(writer), 1)) {
      return writer->slot;
    }
    writer->steps = 0; /* were the parent's */
    writer->items = 0;
  }
  if (!writer->off) {
    halfwatt_open_(writer);
  }
  return writer->slot;
}

static inline void halfwatt_count_(uint64_t steps, double items, int has_items) {
  struct halfwatt_writer* writer = &halfwatt_writer_of_thread_;
  struct halfwatt_page_slot* slot = halfwatt_slot_(writer);
  if (slot == NULL) {
    writer->steps += steps;
    writer->items += items;
    return;
  }
  halfwatt_begin_(slot);
  halfwatt_put_(&slot->steps, slot->steps + writer->steps + steps);
  halfwatt_put_(&slot->changed_ns, halfwatt_now_ns_());
  if (has_items) {
    halfwatt_put_double_(&slot->items, slot->items + writer->items + items);
    halfwatt_put_word_(&slot->flags, slot->flags | HALFWATT_SLOT_HAS_ITEMS);
    writer->items = 0;
  }
  halfwatt_end_(slot);
  writer->steps = 0;
}

/* `steps` more steps have ended. */
static inline void halfwatt_step(uint64_t steps) { halfwatt_count_(steps, 0, 0); }

/* `steps` more steps have ended, with `items` items in all of them together. */
static inline void halfwatt_step_items(uint64_t steps, double items) {
  halfwatt_count_(steps, items, 1);
}

/* The loss as of now. */
static inline void halfwatt_loss(double loss) {
  struct halfwatt_page_slot* slot = halfwatt_slot_(&halfwatt_writer_of_thread_);
  if (slot == NULL) {
    return;
  }
  halfwatt_begin_(slot);
  if (slot->losses > 0 && memcmp(&slot->loss, &loss, sizeof loss) != 0) {
    halfwatt_put_(&slot->losses_changed, slot->losses_changed + 1);
  }
  if (!__builtin_isfinite(loss)) {
    halfwatt_put_(&slot->losses_dead, slot->losses_dead + 1);
  }
  halfwatt_put_double_(&slot->loss, loss);
  halfwatt_put_(&slot->losses, slot->losses + 1);
  halfwatt_end_(slot);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif /* HALFWATT_PROGRESS_H */

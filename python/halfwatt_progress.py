"""Tells halfwatt how far a job has come. One file, no dependencies, Python 3.7 or newer, Linux.

    import halfwatt_progress

    for batch in data:
        loss = train(batch)
        halfwatt_progress.step(items=len(batch), loss=loss.item())

Outside of halfwatt (HALFWATT_PROGRESS unset) nothing happens. No call ever blocks or raises. Any
thread and any forked child may call: each has a slot of its own, and the slots of one rank
(LOCAL_RANK, else RANK, else 0) add up. docs/progress.md describes the page, and
halfwatt_progress.h is the same for C and C++.

SPDX-License-Identifier: Apache-2.0
"""

import fcntl
import math
import mmap
import os
import struct
import threading
import time

_HEADER = struct.Struct("=8s6I")  # magic, version, page, header and slot bytes, slots, generation
_HEADER_BYTES = 128
_SLOT_BYTES = 128
_SLOTS = 127
_PAGE_BYTES = _HEADER_BYTES + _SLOTS * _SLOT_BYTES
_HAS_ITEMS = 1

# Words of 4 bytes in a slot.
_SEQUENCE, _OWNER, _OWNER_SPACE, _GENERATION, _RANK, _FLAGS = range(6)
# Words of 8 bytes in a slot.
_STEPS, _CHANGED_NS, _ITEMS, _LOSS, _LOSSES, _LOSSES_DEAD, _LOSSES_CHANGED = range(3, 10)

_WORD = 0xFFFFFFFF
_of_thread = threading.local()
_monotonic_ns = time.monotonic_ns


class _Busy(Exception):
    """Another process is taking a slot just now."""


class _Writer:
    """One thread's slot. Only its owner writes, so nothing is ever locked."""

    def __init__(self, page, slot):
        begin = _HEADER_BYTES + slot * _SLOT_BYTES
        memory = memoryview(page)[begin:begin + _SLOT_BYTES]
        self.words = memory.cast("I")
        self.counts = memory.cast("Q")
        self.numbers = memory.cast("d")

    def take(self, generation, rank, space):
        """Makes the slot this thread's; counts on where it was the same rank's."""
        words = self.words
        goes_on = words[_OWNER] and words[_GENERATION] == generation and words[_RANK] == rank
        self.begin()
        words[_OWNER] = threading.get_native_id()
        words[_OWNER_SPACE] = space
        if not goes_on:
            words[_RANK] = rank
            words[_FLAGS] = 0
            for each in range(_STEPS, _LOSSES_CHANGED + 1):
                self.counts[each] = 0
            words[_GENERATION] = generation
        self.end()
        self.steps = self.counts[_STEPS]
        self.items = self.numbers[_ITEMS]
        self.sequence = words[_SEQUENCE]

    def begin(self):
        # Odd, also if the last owner was killed between begin and end.
        self.sequence = (self.words[_SEQUENCE] + 1 | 1) & _WORD
        self.words[_SEQUENCE] = self.sequence

    def end(self):
        self.sequence = self.sequence + 1 & _WORD
        self.words[_SEQUENCE] = self.sequence

    def count(self, steps, items):
        words = self.words
        sequence = self.sequence
        words[_SEQUENCE] = sequence + 1
        self.steps += steps
        self.counts[_STEPS] = self.steps
        self.counts[_CHANGED_NS] = _monotonic_ns()
        if items is not None:
            self.items += items
            self.numbers[_ITEMS] = self.items
            words[_FLAGS] = _HAS_ITEMS
        self.sequence = sequence + 2 & _WORD
        words[_SEQUENCE] = self.sequence

    def tell_loss(self, loss):
        counts = self.counts
        before = counts[_LOSS]
        self.begin()
        self.numbers[_LOSS] = loss
        if counts[_LOSSES] and counts[_LOSS] != before:
            counts[_LOSSES_CHANGED] += 1
        if not math.isfinite(loss):
            counts[_LOSSES_DEAD] += 1
        counts[_LOSSES] += 1
        self.end()


def _rank():
    digits = os.environ.get("LOCAL_RANK") or os.environ.get("RANK") or "0"
    return int(digits) & _WORD if digits.isdigit() else 0


def _is_gone(writer, space):
    words = writer.words
    if not space or words[_OWNER_SPACE] != space:
        return False
    try:
        os.kill(words[_OWNER], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _claim(page, generation):
    """A slot that nobody has, else one whose owner is gone and that counted for the same rank
    (it is counted on) or for a job before this one; None if there is none.
    """
    rank = _rank()
    try:
        space = os.stat("/proc/self/ns/pid").st_ino & _WORD
    except OSError:
        space = 0
    found = None
    for slot in range(_SLOTS):
        writer = _Writer(page, slot)
        counts_now = writer.words[_GENERATION] == generation
        if not writer.words[_OWNER]:
            found = found or writer
            break  # slots are taken from the first on
        if (not counts_now or writer.words[_RANK] == rank) and _is_gone(writer, space):
            found = writer
            if counts_now:
                break
    if found:
        found.take(generation, rank, space)
    return found


def _lock(file):
    """Gives way a few times to whoever has the page, which takes microseconds; never waits."""
    for _ in range(20):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            os.sched_yield()
    raise _Busy


def _open():
    """This thread's slot; None if there is nothing to write to."""
    path = os.environ.get("HALFWATT_PROGRESS")
    if not path:
        return None
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if os.fstat(file).st_size != _PAGE_BYTES:
            return None
        _lock(file)
        page = mmap.mmap(file, _PAGE_BYTES)
        magic, version, page_bytes, _, slot_bytes, _, generation = _HEADER.unpack_from(page)
        if (magic, version, page_bytes, slot_bytes) != (b"HALFWATT", 1, _PAGE_BYTES, _SLOT_BYTES):
            return None
        return _claim(page, generation)
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # the mapping would hold it
        os.close(file)


def _first_step(steps, items, loss):
    """A step of a thread that has no slot yet."""
    here = _of_thread
    pending = getattr(here, "pending", None) or (0, None)
    steps += pending[0]
    if pending[1] is not None:
        items = pending[1] + (items or 0)
    try:
        here.writer = _open()
    except _Busy:
        here.pending = (steps, items)  # told with the next step
        return
    except Exception:  # the job must not suffer, whatever is wrong with the page
        here.writer = None
    here.pending = None
    if here.writer is not None:
        step(steps, items, loss)


def step(steps=1, items=None, loss=None):
    """Tells that `steps` more steps have ended, with `items` items in them and `loss` after them
    (NaN is worth telling).
    """
    try:
        writer = _of_thread.writer
    except AttributeError:
        _first_step(steps, items, loss)
        return
    if writer is None:
        return
    try:
        writer.count(steps, items)
        if loss is not None:
            writer.tell_loss(float(loss))
    except Exception:  # not a number, say: the job must not suffer
        writer.sequence = writer.words[_SEQUENCE] + 1 & ~1 & _WORD
        writer.words[_SEQUENCE] = writer.sequence


def _forget():
    """In a forked child: the slot is the parent's."""
    global _of_thread
    _of_thread = threading.local()


os.register_at_fork(after_in_child=_forget)

#!/usr/bin/env python3
"""step_cost.py: what a progress step costs a Python job: the same loop with and without the call,
in turns. Fails above 3 us. Makes its own page, as docs/progress.md describes it.
"""

import os
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
sys.dont_write_bytecode = True

PAIRS = 31
STEPS = 20_000
MOST_NS = 3000


def make_page(path):
    header = struct.pack("=8s6I", b"HALFWATT", 1, 16384, 128, 128, 127, 1)
    with open(path, "wb") as page:
        page.write(header.ljust(16384, b"\0"))


def ns_of_a_step(call):
    begin = time.perf_counter_ns()
    for i in range(STEPS):
        call(i)
    return (time.perf_counter_ns() - begin) / STEPS


def cost_of(call):
    """Median of the pairs' differences."""
    pairs = []
    for _ in range(PAIRS):
        without = ns_of_a_step(lambda i: None)
        pairs.append(ns_of_a_step(call) - without)
    return statistics.median(pairs)


def main():
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "progress.page")
        make_page(page)
        os.environ["HALFWATT_PROGRESS"] = page
        from halfwatt_progress import step

        bare = cost_of(lambda i: step())
        items = cost_of(lambda i: step(items=32))
        loss = cost_of(lambda i: step(items=32, loss=1 / (i + 1)))
        with open(page, "rb") as file:
            counted = struct.unpack_from("=Q", file.read(), 128 + 24)[0]
    print(f"cost of a progress step in Python, median of {PAIRS} pairs of {STEPS} steps:")
    print(f"  step                     {bare:6.0f} ns")
    print(f"  step with items          {items:6.0f} ns")
    print(f"  step with items and loss {loss:6.0f} ns   (at most {MOST_NS})")
    is_counted = counted == 3 * PAIRS * STEPS
    print(f"  steps that the page counted: {'all' if is_counted else 'NOT ALL'}")
    return 0 if is_counted and loss <= MOST_NS else 1


if __name__ == "__main__":
    sys.exit(main())

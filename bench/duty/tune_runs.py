#!/usr/bin/env python3
"""tune_runs.py HALFWATT COMMAND... [--runs 20] [--at-once 3] [--minutes 10]: tune on sim:duty
again and again, against a sweep that measures about three times as long. Runs go side by side, so
that each disturbs the others: a busy machine. No run is begun after so many minutes. Fails if a
limit for 80, 90 or 95 % of the speed, or the limit of least energy, is off by over 10 W in any run.
COMMAND tells its steps as tqdm does, and ends only when it is ended."""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

MOST_OFF = 10  # W
SWEEP = ["sweep", "--limits", "100:220:10", "--repeats", "3"]


def verdict(words, halfwatt, command):
    """What a run answers: its limits, its windows and how long it took; None if it failed."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="halfwatt-bench-") as folder:
        done = subprocess.run(
            [halfwatt, *words, "--device", "sim:duty", "--state-dir", folder, "--progress", "tqdm",
             "--format", "json", "--", *command], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr.strip().split("\n")[-1], file=sys.stderr)
        return None
    series = json.loads(done.stdout)["series"][0]
    answer = {f"{each['percent']:g} %": each["limit_w"] for each in series["keep"]}
    answer["least J"] = series["least_energy"]["limit_w"]
    return answer, series, time.monotonic() - begin


def row(name, found, reference=None):
    if found is None:
        return f"{name:>8}  failed"
    answer, series, seconds = found
    cells = "".join(f"{limit:>9g}" for limit in answer.values())
    off = max(abs(limit - reference[key]) for key, limit in answer.items()) if reference else 0
    noise = series["window_noise"]
    noise = "     ?" if noise is None else f"{noise * 100:>5.1f}%"
    return (f"{name:>8}{cells}{off:>7g}{series['windows']:>9}{series['rejected_windows']:>6} {noise}"
            f"{seconds:>7.0f}{os.getloadavg()[0]:>6.1f}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("halfwatt")
    options.add_argument("command", nargs="+")
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--at-once", type=int, default=3)
    options.add_argument("--minutes", type=float, default=10)
    asked = options.parse_args()
    until = time.monotonic() + asked.minutes * 60

    def tune(_):
        if time.monotonic() > until:
            return "not begun"
        return verdict(["tune"], asked.halfwatt, asked.command)

    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        sweep = pool.submit(verdict, SWEEP, asked.halfwatt, asked.command)
        runs = [pool.submit(tune, i) for i in range(asked.runs)]
        reference = sweep.result()
        if reference is None:
            return 2
        wanted = reference[0]
        print("".join(f"{word:>9}" for word in ["        ", *wanted])[1:] +
              "  off W  windows  void  noise      s  load")
        print(row("sweep", reference))
        good, all_of_them = 0, 0
        for run in runs:
            found = run.result()
            if found == "not begun":
                continue
            all_of_them += 1
            print(row(f"tune {all_of_them}", found, wanted), flush=True)
            good += found is not None and all(
                abs(limit - wanted[key]) <= MOST_OFF for key, limit in found[0].items())
    print(f"{good} of {all_of_them} within {MOST_OFF} W of the sweep")
    return 0 if good == all_of_them else 1


if __name__ == "__main__":
    sys.exit(main())

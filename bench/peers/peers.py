#!/usr/bin/env python3
"""peers.py HALFWATT [--threads 2] [--seconds 4] [--rounds 3] [--cases WORD] [--json FILE]: halfwatt
against PyTorch (eager and compiled) and onnxruntime on this machine's processors: the same model,
random normal images of the same size, threads and cores, in turns. Every measurement is a process
of its own, and the order turns from round to round. A figure is the median over rounds of the
median step. Fails where halfwatt is slower than its best peer.

Needs torch and timm; onnx and onnxruntime where they are (a peer that is not there is said to be
missing). Debian's own python3-torch has a slow BLAS and is no peer: use PyPI's."""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys

# model, mode, halfwatt's precision, batch, what best peer / ours is to be
CASES = [
    ("vit_tiny_patch16_224", "infer", "fp32", 1, 1.2),
    ("vit_tiny_patch16_224", "infer", "bf16", 1, 1.3),
    ("vit_base_patch16_224", "infer", "fp32", 8, 1.05),
    ("vit_base_patch16_224", "infer", "bf16", 8, 1.15),
    ("vit_tiny_patch16_224", "train", "fp32", 16, 1.15),
    ("vit_tiny_patch16_224", "train", "amp-bf16", 16, 1.2),
]

# What a peer may do for a precision; the faster one counts.
PEERS = {
    ("infer", "fp32"): ["eager fp32", "compiled fp32", "onnxruntime fp32"],
    ("infer", "bf16"): ["eager autocast", "eager bf16", "compiled autocast", "compiled bf16"],
    ("train", "fp32"): ["eager fp32", "compiled fp32"],
    ("train", "amp-bf16"): ["eager autocast", "compiled autocast"],
}


def has(module):
    return importlib.util.find_spec(module) is not None


def in_process(words, threads):
    """What a measuring process prints last, or None with its last words on stderr."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    cores = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(words, capture_output=True, text=True, env=environment,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores), check=False)
    if done.returncode != 0 or not done.stdout.strip():
        last = (done.stderr.strip().split("\n") or [""])[-1]
        print(f"{' '.join(words[:6])}...: {last}", file=sys.stderr)
        return None
    return done.stdout


def ours(halfwatt, case, threads, seconds):
    """Seconds of one step of halfwatt."""
    model, mode, precision, batch, _ = case
    out = in_process([halfwatt, "bench", "--model", model, "--mode", mode, "--precision", precision,
                      "--batch", str(batch), "--threads", str(threads), "--seconds", str(seconds),
                      "--format", "json"], threads)
    if out is None:
        return None
    row = json.loads(out)["rows"][0]
    return row["step_ms"] / 1000 if row["numerical_state"] == "live" else None


def theirs(peer, case, threads, seconds):
    """Seconds of one step of a peer."""
    model, mode, _, batch, _ = case
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_step.py")
    out = in_process([sys.executable, script, peer, model, mode, str(batch), str(threads),
                      str(seconds)], threads)
    return None if out is None else float(out.split()[-1])


def runners(case, halfwatt, threads, seconds):
    """Who is measured for a case, by name."""
    names = PEERS[(case[1], case[2])]
    missing = [name for name in names if name.startswith("onnxruntime")
               and not (has("onnxruntime") and has("onnx"))]
    for name in missing:
        print(f"{name}: not installed, left out", file=sys.stderr)
    all_of_them = {"halfwatt": lambda: ours(halfwatt, case, threads, seconds)}
    for name in names:
        if name not in missing:
            all_of_them[name] = lambda name=name: theirs(name, case, threads, seconds)
    return all_of_them


def measure(case, options):
    """Name -> seconds of a step, one for each round."""
    steps = {}
    everybody = list(runners(case, options.halfwatt, options.threads, options.seconds).items())
    for turn in range(options.rounds):
        shift = turn % len(everybody)
        for name, run in everybody[shift:] + everybody[:shift]:
            seconds = run()
            if seconds is not None:
                steps.setdefault(name, []).append(seconds)
    return steps


def show(case, steps):
    """Prints a case; whether halfwatt is no slower than its best peer."""
    model, mode, precision, batch, target = case
    print(f"\n{mode} {model}, {precision}, batch {batch}")
    medians = {name: statistics.median(each) for name, each in steps.items()}
    for name, each in sorted(steps.items(), key=lambda item: medians[item[0]]):
        print(f"  {name:18} {medians[name] * 1000:9.2f} ms   "
              f"({min(each) * 1000:.2f} to {max(each) * 1000:.2f}, {len(each)} rounds)")
    peers = {name: median for name, median in medians.items() if name != "halfwatt"}
    if "halfwatt" not in medians or not peers:
        print("  no comparison")
        return False
    best = min(peers, key=peers.get)
    ratio = peers[best] / medians["halfwatt"]
    word = "reached" if ratio >= target else "MISSED" if ratio >= 1 else "SLOWER"
    print(f"  best peer / ours {ratio:.2f} ({best}); wanted {target:.2f}: {word}", flush=True)
    return ratio >= 1


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    words.add_argument("halfwatt")
    words.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words.add_argument("--seconds", type=float, default=4)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--cases", default="", help="only cases that hold this word")
    words.add_argument("--json", default="", help="also write every figure here")
    options = words.parse_args()
    if not has("torch") or not has("timm"):
        print("peers.py: needs torch and timm, as `pip install torch timm` brings them",
              file=sys.stderr)
        return 2
    good = True
    everything = []
    for case in CASES:
        if options.cases in " ".join(map(str, case)):
            steps = measure(case, options)
            good = show(case, steps) and good
            everything.append({"case": case, "step_s": steps})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

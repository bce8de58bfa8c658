#!/usr/bin/env python3
"""beside_pillow.py [BENCH_DATA]: the tasks of bench_data beside Pillow and torchvision, one
thread each, in turns, by that thread's processor time. Needs torch, torchvision, timm, Pillow and
numpy of PyPI. Fails where we are not 1.5 times as fast.
"""

import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import PIL  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from PIL import Image  # noqa: E402
from timm.data import create_transform  # noqa: E402

ROUNDS = 9
SECONDS = 0.25
LEAST = 1.5
RESAMPLERS = ("portable", "avx2", "avx512_vnni")


def tasks():
    half = (0.5, 0.5, 0.5)
    evaluate = create_transform(224, is_training=False, interpolation="bicubic", crop_pct=0.9,
                                mean=half, std=half)
    train = create_transform(224, is_training=True, color_jitter=None, mean=half, std=half)
    return {"resize": lambda image: image.resize((224, 224), Image.Resampling.BICUBIC),
            "evaluate": evaluate, "train": train}


def pillow(task, image):
    count, begin = 0, time.thread_time()
    while (took := time.thread_time() - begin) < SECONDS:
        task(image)
        count += 1
    return count / took


def ours(program, task, resampler):
    """None where the machine lacks the instructions."""
    done = subprocess.run([program, task, resampler], capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/bench_data"
    torch.set_num_threads(1)
    pixels = np.random.default_rng(1).integers(0, 256, (375, 500, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    print(f"Pillow {PIL.__version__}, torchvision {torchvision.__version__}, timm "
          f"{timm.__version__}; load {os.getloadavg()[0]:.2f} at the start; medians of {ROUNDS} "
          "rounds (lowest to highest), pictures a second of processor time")
    good = True
    for name, task in tasks().items():
        rates = {"Pillow": [], **{resampler: [] for resampler in RESAMPLERS}}
        for _ in range(ROUNDS):
            rates["Pillow"].append(pillow(task, image))
            for resampler in RESAMPLERS:
                if (rate := ours(program, name, resampler)) is not None:
                    rates[resampler].append(rate)
        for who, all_of in rates.items():
            if not all_of:
                print(f"{name:9} {who:12} not on this machine")
                continue
            ratio = statistics.median(a / b for a, b in zip(all_of, rates["Pillow"]))
            print(f"{name:9} {who:12} {statistics.median(all_of):7.0f} ({min(all_of):.0f} to "
                  f"{max(all_of):.0f})  {ratio:5.2f} x Pillow")
        fastest = [all_of for all_of in rates.values() if all_of][-1]
        good &= statistics.median(a / b for a, b in zip(fastest, rates["Pillow"])) >= LEAST
    print(f"load {os.getloadavg()[0]:.2f} at the end; {'reached' if good else 'MISSED'}: "
          f"at least {LEAST} x")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""beside_pillow.py BENCH_DATA [JPEG...]: the tasks of bench_data beside Pillow and torchvision,
one thread each, in turns, by that thread's processor time: of a picture that is decoded already,
or of these JPEGs from their bytes (photos.py makes some). Needs torch, torchvision, timm, Pillow
and numpy of PyPI. Fails where we are not 1.5 times as fast.
"""

import io
import os
import pathlib
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


def photo_tasks():
    def seen(transform):
        return lambda jpeg: transform(Image.open(io.BytesIO(jpeg)).convert("RGB"))

    return {"photo_evaluate_f32": seen(tasks()["evaluate"]),
            "photo_train_f32": seen(tasks()["train"])}


def pillow(task, inputs):
    count, begin = 0, time.thread_time()
    while (took := time.thread_time() - begin) < SECONDS or count % len(inputs):
        task(inputs[count % len(inputs)])
        count += 1
    return count / took


def ours(words):
    """None where the machine lacks the instructions."""
    done = subprocess.run(words, capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def compare(name, task, inputs, words):
    """Whether the fastest of ours, which `words` name, is fast enough."""
    rates = {"Pillow": [], **{who: [] for who in words}}
    for _ in range(ROUNDS):
        rates["Pillow"].append(pillow(task, inputs))
        for who in words:
            if (rate := ours(words[who])) is not None:
                rates[who].append(rate)
    for who, all_of in rates.items():
        if not all_of:
            print(f"{name:18} {who:12} not on this machine")
            continue
        ratios = [a / b for a, b in zip(all_of, rates["Pillow"])]
        print(f"{name:18} {who:12} {statistics.median(all_of):7.0f} ({min(all_of):.0f} to "
              f"{max(all_of):.0f})  {statistics.median(ratios):5.2f} x Pillow "
              f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    fastest = [all_of for all_of in rates.values() if all_of][-1]
    return statistics.median(a / b for a, b in zip(fastest, rates["Pillow"])) >= LEAST


def main():
    program, *photos = sys.argv[1:]
    torch.set_num_threads(1)
    print(f"Pillow {PIL.__version__}, torchvision {torchvision.__version__}, timm "
          f"{timm.__version__}; load {os.getloadavg()[0]:.2f} at the start; medians of {ROUNDS} "
          "rounds (lowest to highest), pictures a second of processor time")
    if photos:
        inputs = [pathlib.Path(photo).read_bytes() for photo in photos]
        good = [compare(name, task, inputs, {"halfwatt": [program, name, *photos]})
                for name, task in photo_tasks().items()]
    else:
        pixels = np.random.default_rng(1).integers(0, 256, (375, 500, 3), dtype=np.uint8)
        good = [compare(name, task, [Image.fromarray(pixels)],
                        {each: [program, name, each] for each in RESAMPLERS})
                for name, task in tasks().items()]
    print(f"load {os.getloadavg()[0]:.2f} at the end; {'reached' if all(good) else 'MISSED'}: "
          f"at least {LEAST} x")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The jobs behind tqdm_*.bytes: tqdm_job.py NAME."""

import sys
import time

from tqdm import tqdm, trange


def epochs():
    for epoch in range(3):
        for _ in tqdm(range(40), desc=f"epoch {epoch}"):
            time.sleep(0.02)


def nested():
    for _ in trange(3, desc="epochs", colour="green"):
        with trange(30, desc="train", leave=False, colour="#00ff00") as bar:
            for step in bar:
                time.sleep(0.02)
                bar.set_postfix(loss=1 / (step + 1))


def slow():
    for _ in tqdm(range(4)):
        time.sleep(1.1)


def resumed():
    for _ in tqdm(range(500, 540), initial=500, total=540):
        time.sleep(0.02)


def without_total():
    for _ in tqdm(iter(range(40))):
        time.sleep(0.02)


def train_val():
    for _ in range(3):
        for _ in tqdm(range(50)):
            time.sleep(0.02)
        for _ in tqdm(range(20)):
            time.sleep(0.01)


def prepared():
    """A download and a long preparation before 60 steps of training."""
    for _ in tqdm(range(300), desc="model.safetensors", unit="B", unit_scale=5_000_000):
        time.sleep(0.001)
    for _ in tqdm(range(5000), desc="Map", unit=" examples"):
        time.sleep(0.0001)
    for step in (bar := tqdm(range(60), desc="training")):
        time.sleep(0.02)
        bar.set_postfix({"loss": "nan" if step > 30 else f"{2 - step / 50:.4f}", "lr": 1e-4})


if __name__ == "__main__":
    globals()[sys.argv[1]]()

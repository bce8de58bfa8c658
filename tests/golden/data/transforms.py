#!/usr/bin/env python3
"""transforms.py [FOLDER]: writes transforms.json and normalised.safetensors, what timm makes of
pictures.

- models: how timm preprocesses for the weights it loads for each ViT by default
- views: FNV-1a of the pixels of its evaluation transform, before it normalises
- crops: its RandomResizedCrop, given the draws of halfwatt::KeyedRandom
- normalised: the bytes 0 to 255, in each of three channels, normalised

Ran with Python 3.11.7, torch 2.11.0, torchvision 0.26.0, timm 1.0.31, Pillow 12.3.0.
"""

import json
import sys
from pathlib import Path

import numpy as np
import timm
import timm.data.transforms
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data import create_transform
from timm.data.constants import (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD,
                                 IMAGENET_INCEPTION_MEAN, IMAGENET_INCEPTION_STD)
from timm.models import get_pretrained_cfg, is_model

from pictures import fnv1a, picture

MODELS = [f"vit_{size}_patch{patch}_{side}" for size in ("tiny", "small", "base", "large")
          for patch in (16, 32) for side in (224, 384)]

# Width and height; those of facts, odd ones, thin ones, ones that are as large as wanted already,
# one that Pillow 13 would do the other way round.
PICTURES = [(500, 375), (333, 500), (225, 224), (600, 400), (224, 224), (248, 248), (249, 250),
            (97, 61), (1, 1), (1, 9), (700, 3), (451, 300), (300, 700)]
# side, crop_pct, interpolation; 1.2 makes the crop larger than what is resized
VIEWS = [(224, 0.9, "bicubic"), (224, 0.875, "bilinear"), (224, 1.0, "bicubic"),
         (96, 1.2, "bicubic"), (97, 0.95, "bilinear")]


def models():
    for name in filter(is_model, MODELS):
        cfg = get_pretrained_cfg(name)
        if cfg is not None and cfg.input_size[1] == cfg.input_size[2]:
            yield {"model": name, "size": cfg.input_size[1], "crop": cfg.crop_pct,
                   "filter": cfg.interpolation, "mean": list(cfg.mean), "std": list(cfg.std),
                   "mode": cfg.crop_mode}


def views():
    for seed, (width, height) in enumerate(PICTURES, 1):
        for side, crop, word in VIEWS:
            transform = create_transform(side, is_training=False, interpolation=word,
                                         crop_pct=crop, normalize=False)
            pixels = transform(picture(seed, width, height)).permute(1, 2, 0).numpy()
            assert pixels.shape == (side, side, 3) and pixels.dtype == np.uint8
            yield {"seed": seed, "width": width, "height": height, "size": side, "crop": crop,
                   "filter": word, "fnv1a": f"{fnv1a(pixels.tobytes()):016x}"}


def philox(counter, key):
    """halfwatt::philox."""
    low = 0xFFFFFFFF
    for _ in range(10):
        even, odd = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [odd >> 32 ^ counter[1] ^ key[0], odd & low,
                   even >> 32 ^ counter[3] ^ key[1], even & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return counter


def mixed(seed):
    """The first draw of halfwatt::Rng(seed)."""
    low = 0xFFFFFFFFFFFFFFFF
    value = seed + 0x9E3779B97F4A7C15 & low
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & low
    value = (value ^ value >> 27) * 0x94D049BB133111EB & low
    return value ^ value >> 31


class Draws:
    """Stands in for `random` in timm: each try has the four words of a block."""

    def __init__(self, seed, epoch, sample):
        key = mixed(seed) ^ fnv1a(b"data.crop")
        self.key = [key & 0xFFFFFFFF, key >> 32]
        self.epoch, self.sample = epoch, sample
        self.tries, self.words = 0, []

    def uniform(self, low, high):
        if len(self.words) != 3:  # the first number of a try
            self.words = philox([self.tries, self.epoch, self.sample & 0xFFFFFFFF,
                                 self.sample >> 32], self.key)
            self.tries += 1
        return low + (high - low) * (self.words.pop(0) * 2.0**-32)

    def randint(self, low, high):
        return low + (self.words.pop(0) * (high - low + 1) >> 32)


def crops():
    crop = timm.data.transforms.RandomResizedCropAndInterpolation
    sizes = [(500, 375), (333, 500), (32, 32), (97, 61), (1000, 100), (100, 1000), (64, 600)]
    for at in range(70):
        width, height = sizes[at % len(sizes)]
        # Some samples need more than 32 bits.
        key = {"seed": at // 7, "epoch": at % 5, "sample": at * 43 + (at % 3 << 32)}
        timm.data.transforms.random = Draws(**key)
        scale = (0.08, 1.0) if at % 2 == 0 else (0.9, 1.0)
        top, left, tall, wide = crop.get_params(Image.new("RGB", (width, height)), scale,
                                                (3 / 4, 4 / 3))
        yield {**key, "width": width, "height": height, "least_area": scale[0],
               "tries": timm.data.transforms.random.tries, "box": [left, top, wide, tall]}


def normalised():
    ramp = Image.fromarray(np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(1, 256, 3))
    for name, mean, std in [("inception", IMAGENET_INCEPTION_MEAN, IMAGENET_INCEPTION_STD),
                            ("imagenet", IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)]:
        both = create_transform(224, is_training=False, mean=mean, std=std).transforms[-2:]
        values = both[1](both[0](ramp))
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            yield f"{name}/{str(dtype).removeprefix('torch.')}", values.to(dtype).contiguous()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    parts = {"models": models(), "views": views(), "crops": crops()}
    lists = [f'"{name}": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]"
             for name, rows in parts.items()]
    (folder / "transforms.json").write_text("{\n" + ",\n".join(lists) + "\n}\n", "utf-8")
    save_file(dict(normalised()), folder / "normalised.safetensors")


if __name__ == "__main__":
    main()
